"""Declarations of tokens, and tokenizers against obvious definitions."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.resources.normal_form import normalise_token
from correlation.resources.separators import SEPARATORS_LIMIT, TooManySeparatorsError, split_text
from correlation.resources.tokens import (
    Tokens,
    describe_tokens,
    text_splitter,
    tokens_from_document,
    tokens_to_document,
)
from tests.support.messages import assert_names

# Letters of several scripts, marks, digits, separators, and characters with several forms.
LETTERS = "aAbsSzZ_0 9.,;-'\"\t\nß\u017féÉ\u0301\u0323ǅ\u041aи\u0345δΩ漢\U0001f600हिन्दी\u200dﬁ²½"
TEXTS = st.text(st.sampled_from(LETTERS) | st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("document", "tokens"),
    [
        (None, None),
        ("tags", Tokens(("tags",))),
        ("alert.tags", Tokens(("alert", "tags"))),
        (["alert.tags"], Tokens(("alert.tags",))),
        ({"path": "tags", "lower_case": True}, Tokens(("tags",), lower_case=True)),
        (
            {"path": ["a", "b"], "tokenizer": "words", "stop_words": ["the", "and", "the"]},
            Tokens(("a", "b"), "words", stop_words=("and", "the")),
        ),
        ({"path": "m", "tokenizer": r"split:[,;]\s*"}, Tokens(("m",), r"split:[,;]\s*")),
        ({"path": "m", "tokenizer": "ngrams:32"}, Tokens(("m",), "ngrams:32")),
    ],
)
def test_a_declaration_comes_back_in_its_normal_form(document: Any, tokens: Tokens | None) -> None:  # noqa: ANN401 - any JSON
    assert tokens_from_document(document) == tokens
    stored = tokens_to_document(tokens)
    assert tokens_from_document(stored) == tokens
    assert stored is None or set(stored) == {"path", "tokenizer", "lower_case", "stop_words"}


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        (3, {"tokens": "not a valid path"}),
        ("", {"tokens": "not a valid path"}),
        ([], {"tokens": "not a valid path"}),
        ({}, {"tokens.path": "missing"}),
        ({"path": "a..b"}, {"tokens.path": "empty part"}),
        ({"path": "$topic"}, {"tokens.path": "$topic"}),
        (
            {"path": 1, "token": 2, "lower_case": "yes", "stop_words": "the", "tokenizer": None},
            {
                "tokens.token": "path, tokenizer, lower_case, stop_words",
                "tokens.path": "not a valid path",
                "tokens.tokenizer": "got null",
                "tokens.lower_case": "true or false",
                "tokens.stop_words": "must be a list",
            },
        ),
        (
            {"path": "a", "tokenizer": "word", "stop_words": ["a", 3]},
            {"tokens.stop_words": "contains a number", "tokens.tokenizer": "'word' is unknown"},
        ),
        ({"path": "a", "stop_words": [""]}, {"tokens.stop_words": "'' has 0 bytes"}),
        ({"path": "a", "stop_words": ["\ud800"]}, {"tokens.stop_words": r"'\ud800' is not valid"}),
        ({"path": "a", "stop_words": ["é" * 513]}, {"tokens.stop_words": "1026 bytes"}),
        (
            {"path": "a", "stop_words": ["b", "o" + "\u0301" * 31]},
            {"tokens.stop_words": "more than 30 combining marks"},
        ),
        (
            {"path": "a", "stop_words": [str(it) for it in range(1001)]},
            {"tokens.stop_words": "1001 words; use at most 1000"},
        ),
        *(
            ({"path": "a", "tokenizer": tokenizer}, {"tokens.tokenizer": name})
            for tokenizer, name in {
                "": "list, words, split:REGEX, ngrams:N",
                "words:2": "'words:2' is unknown",
                "split": "'split' is unknown",
                "ngrams": "'ngrams' is unknown",
                "ngrams:N": "1 to 32; got 'N'",
                "ngrams:0": "1 to 32; got '0'",
                "ngrams:03": "1 to 32; got '03'",
                "ngrams:33": "1 to 32; got '33'",
                "ngrams:3\n": r"1 to 32; got '3\n'",
                "ngrams:\u0663": "1 to 32; got '\u0663'",
                "split:": "no expression",
                "split:(": "missing ): (",
                "split:(?=a)": "invalid perl operator: (?=",
                r"split:(a)\1": r"invalid escape sequence: \1",
                "split:a{1001}": "invalid repetition size: {1001}",
                "split:((a{100}){100}){100}": "invalid repetition",
                r"split:[^\pL]+": "1203 instructions",
                "split:" + "a" * 1001: "1001 characters; use at most 1000",
                "split:,*": "matches the empty string",
                "split:a|$": "matches the empty string",
                r"split:\C": r"\C matches a part",
                "split:\ud800": "not valid Unicode",
            }.items()
        ),
    ],
)
def test_every_wrong_field_is_named(document: object, problems: dict[str, str]) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        tokens_from_document(document)
    found = refused.value.problems
    assert [it.field for it in found] == [*problems]
    for it in found:
        assert_names(it, problems[it.field])


@pytest.mark.parametrize(
    ("text", "plain", "folded"),
    [
        ("Disk", "Disk", "disk"),
        ("Straße", "Straße", "strasse"),
        ("STRASSE", "STRASSE", "strasse"),
        # Composed and decomposed, and with the marks in either order.
        ("caf\u00e9", "caf\u00e9", "caf\u00e9"),
        ("CAFE\u0301", "CAF\u00c9", "caf\u00e9"),
        ("a\u0301\u0323", "\u1ea1\u0301", "\u1ea1\u0301"),
        ("A\u0323\u0301", "\u1ea0\u0301", "\u1ea1\u0301"),
        # The sign Ångström is the letter Å in NFC; compatibility forms stay.
        ("\u212b", "\u00c5", "\u00e5"),
        ("\ufb01", "\ufb01", "fi"),
        # Both small sigmas.
        ("\u03a3\u03b4\u03a3", "\u03a3\u03b4\u03a3", "\u03c3\u03b4\u03c3"),
        ("\u03c3\u03b4\u03c2", "\u03c3\u03b4\u03c2", "\u03c3\u03b4\u03c3"),
    ],
)
def test_tokens_are_normalised(text: str, plain: str, folded: str) -> None:
    assert normalise_token(text, lower_case=False) == plain
    assert normalise_token(text, lower_case=True) == folded


@given(text=TEXTS, lower_case=st.booleans())
def test_equivalent_strings_have_equal_tokens(text: str, *, lower_case: bool) -> None:
    found = normalise_token(text, lower_case=lower_case)
    assert unicodedata.is_normalized("NFC", found)
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, text)
        assert normalise_token(other, lower_case=lower_case) == found
    if not lower_case:
        assert found == unicodedata.normalize("NFC", text)


def is_part_of_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_\u200c\u200d" or unicodedata.category(letter)[0] == "M"


@given(text=TEXTS)
def test_words_are_the_longest_runs_of_their_letters(text: str) -> None:
    words, word = [], ""
    for letter in f"{text} ":
        if is_part_of_word(letter):
            word += letter
        elif word:
            words.append(word)
            word = ""
    assert text_splitter("words")(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Disk /var is 97 % full!", ["Disk", "var", "is", "97", "full"]),
        ("naïve co-operation, don't", ["naïve", "co", "operation", "don", "t"]),
        ("user_id=x.y", ["user_id", "x", "y"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("q\u0307 r", ["q\u0307", "r"]),
        (" ,;\t", []),
        ("", []),
    ],
)
def test_words_of_a_string(text: str, words: list[str]) -> None:
    assert text_splitter("words")(text) == words


@given(text=TEXTS, size=st.integers(1, 32))
def test_ngrams_are_all_windows(text: str, size: int) -> None:
    found = text_splitter(f"ngrams:{size}")(text)
    if len(text) < size:
        assert found == ([text] if text else [])
    else:
        assert found == [text[it : it + size] for it in range(len(text)) if it + size <= len(text)]


# Expressions that mean the same to Python's engine, on strings of `LETTERS`.
EXPRESSIONS = (
    *(",", " ", "a", "é", "漢", r"\.", "[,;]", r"[,;]\s*", "[ \t\n]+", "aA?", "a|aA", "aA|a"),
    *("(a)|(b+)", "[^a-z]+", "(?i)s", r"\x{e9}|0", "(?:,|;)+", "^a", r"z\z", "."),
)


def divided(expression: str, text: str) -> list[str]:
    """Divide a string by Python's engine; its `split` would keep groups."""
    translated = expression.replace(r"\x{e9}", "é").replace(r"\z", r"\Z")
    spans = [it.span() for it in re.finditer(translated, text)]
    bounds = [0, *(it for span in spans for it in span), len(text)]
    parts = [text[low:high] for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    return [part for part in parts if part]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(text=st.text(st.sampled_from("aAbsz_0 ,;.é\t\n漢"), max_size=30))
def test_split_divides_like_the_expression(expression: str, text: str) -> None:
    assert text_splitter(f"split:{expression}")(text) == divided(expression, text)


@pytest.mark.parametrize(
    "expression",
    ["a", "[ab]", "ab|a", "a(b[abc]{1,100}a)?", "é.*?é|漢", "b{128}|a{127}b|b", "^a|b$"],
)
@given(
    runs=st.lists(st.tuples(st.sampled_from("aabé漢ccc"), st.integers(0, 130)), max_size=12),
    shift=st.integers(0, 300),
)
def test_long_strings_are_divided_like_short_ones(
    expression: str, runs: list[tuple[str, int]], shift: int
) -> None:
    # Separators of at most 128 bytes, at any place of the windows.
    text = "c" * shift + "".join(letter * count for letter, count in runs)
    found = re.sub(r"é[^é]{40,}", "é", text) if "é" in expression else text
    assert split_text(expression, found) == divided(expression, found)


@pytest.mark.parametrize("length", [127, 128, 129, 255, 256, 257, 5_000])
def test_a_long_run_of_separators_is_divided_without_a_trace(length: int) -> None:
    for shift in range(0, 260, 13):
        text = "x" * shift + " " * length + "y"
        assert split_text(r"\s+", text) == [it for it in ("x" * shift, "y") if it]


def test_an_empty_match_does_not_separate() -> None:
    assert split_text(r"\b", "ab é cd") == ["ab é cd"]
    assert split_text(r",|$", "ab,cd") == ["ab", "cd"]


@pytest.mark.parametrize("expression", [",", "[,;]"])
def test_separators_are_limited(expression: str) -> None:
    assert split_text(expression, "," * SEPARATORS_LIMIT + "a") == ["a"]
    with pytest.raises(TooManySeparatorsError):
        split_text(expression, "," * (SEPARATORS_LIMIT + 1))


# A backtracking engine needs exponential time for the first three.
@pytest.mark.parametrize(
    "expression",
    ["(x+x+)+y", "(x*)*y", "(x|xx)+y", "(a|b)*a(a|b){12}c", r"x{0,1000}y", "(?:x?){900}y"],
)
def test_no_expression_explodes(expression: str) -> None:
    # The time limit is that of the test; the work is linear.
    text = "x" * 5_000
    assert text_splitter(f"split:{expression}")(text) == [text]


def test_stop_words_are_normalised_as_tokens() -> None:
    tokens = Tokens(("t",), "words", lower_case=True, stop_words=("The", "CAFE\u0301", "the"))
    assert tokens.stop_words == ("caf\u00e9", "the")
    assert Tokens(("t",), "words", stop_words=("The", "e\u0301")).stop_words == ("The", "\u00e9")


def test_many_tokens_are_described_by_the_first() -> None:
    assert describe_tokens([]) == "0 tokens"
    assert describe_tokens(["é"]) == "1 token: é"
    assert describe_tokens([str(it) for it in range(1_021)]) == (
        f"1,021 tokens: {', '.join(map(str, range(20)))} and 1,001 more"
    )
