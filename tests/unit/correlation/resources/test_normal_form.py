"""The limit of combining marks, and the work of normalisation, which is counted."""

from __future__ import annotations

import sys
import unicodedata
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.resources.normal_form import MARKS_LIMIT, TooManyMarksError, normalise_token
from correlation.resources.tokens import Tokens

# Letters, letters of class 0 that end in marks or consist of them, and marks of one and two parts.
LETTERS = "a1\u00e9\u1faf\u0f73\u0f75\u0f81\u0301\u0323\u0344\u0345\U0001d165"
RUNS = st.lists(st.tuples(st.sampled_from(LETTERS), st.integers(1, 34)), max_size=6)
TEXTS = RUNS.map(lambda runs: "".join(letter * count for letter, count in runs))


def runs_of_marks(decomposed: str) -> list[int]:
    """Return the lengths of the runs that the sort of NFD sorts."""
    groups = groupby(decomposed, lambda it: unicodedata.combining(it) > 0)
    return [len([*run]) for is_run, run in groups if is_run]


def is_accepted(text: str, *, lower_case: bool = False) -> bool:
    try:
        normalise_token(text, lower_case=lower_case)
    except TooManyMarksError:
        return False
    return True


def test_p_marks_properties_of_all_characters() -> None:
    most_of_marks = most_at_end = 0
    composed_marks = []
    for letter in map(chr, range(sys.maxunicode + 1)):
        parts = unicodedata.normalize("NFD", letter)
        if parts == letter == letter.casefold() and not unicodedata.combining(letter):
            continue
        classes = [unicodedata.combining(it) for it in parts]
        at_end = len(classes) - max((at for at, it in enumerate(classes, 1) if it == 0), default=0)
        if classes[0]:
            assert 0 not in classes
            most_of_marks = max(most_of_marks, len(parts))
            if not unicodedata.combining(letter):
                composed_marks.append(letter)
        else:
            most_at_end = max(most_at_end, at_end)
        folded = unicodedata.normalize("NFD", parts.casefold())
        if folded != parts:
            # Folding adds no mark to a letter, and keeps a mark or replaces it by a letter.
            after = [unicodedata.combining(it) for it in folded]
            assert not after[0] or classes[0]
            assert not (classes[0] and at_end < len([it for it in after if it]))
            assert max(runs_of_marks(folded), default=0) <= max(runs_of_marks(parts), default=0)
    assert (most_of_marks, most_at_end) == (2, 3)
    assert composed_marks == ["\u0f73", "\u0f75", "\u0f81"]


@given(text=TEXTS)
def test_p_marks_equivalent_strings_are_refused_alike(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    accepted = max(runs_of_marks(decomposed), default=0) <= MARKS_LIMIT
    for form in (text, decomposed, unicodedata.normalize("NFC", text)):
        for lower_case in (False, True):
            assert is_accepted(form, lower_case=lower_case) is accepted
            if accepted:
                # Stop words are stored in their normal form and read again.
                found = normalise_token(form, lower_case=lower_case)
                assert normalise_token(found, lower_case=lower_case) == found


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0323" * 5_000,
        "\u0301\u0323" * 5_000,
        # 30 marks in a row, of two parts each: NFD has 63.
        ("\u1faf" + "\u0344" * 30) * 400,
        ("\u1faf" + "\u0344" * 13) * 800,
        # Letters of class 0, each of which is two marks in NFD.
        "\u0f73\u0f81" * 5_000,
        # Characters beyond the first plane without and with marks.
        "\U0001f600" * 10_000,
        "a" + "\U0001d165\U0001d16d" * 5_000,
    ],
)
@pytest.mark.parametrize("lower_case", [False, True])
def test_p_marks_no_long_run_is_normalised(
    text: str, monkeypatch: pytest.MonkeyPatch, *, lower_case: bool
) -> None:
    decompose = unicodedata.normalize
    work, calls = 0, 0

    def count(form: str, part: str) -> str:
        nonlocal work, calls
        calls += 1
        # The sort of a run takes the square of its length.
        runs = runs_of_marks("".join(decompose("NFD", it) for it in part))
        assert max(runs, default=0) <= 2 * MARKS_LIMIT + 3
        work += sum(it * it for it in runs)
        return decompose(form, part)  # type: ignore[arg-type]

    monkeypatch.setattr(unicodedata, "normalize", count)
    is_accepted(text, lower_case=lower_case)
    assert calls <= 3
    assert work <= calls * 63 * 4 * len(text)


def test_stop_words_at_the_limit_are_stored_and_read_again() -> None:
    tokens = Tokens(("t",), stop_words=("o" + "\u0344" * 15, "o" + "\u0301" * 30))
    assert Tokens(("t",), stop_words=tokens.stop_words) == tokens
