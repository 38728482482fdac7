"""Tokens of records: lists and strings, limits, and columns of the events of a stream."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import SetsColumn
from correlation.errors import RejectedEventError
from correlation.parsing.token_reader import tokens_reader
from correlation.reasons import Reason
from correlation.resources.tokens import tokens_from_document
from tests.support.messages import assert_names
from tests.unit.correlation.parsing.test_attribute_intake import TIMED, intake


def read(declared: object, record: object) -> list[str]:
    tokens = tokens_from_document(declared)
    assert tokens is not None
    return [it.decode() for it in tokens_reader(tokens)(record)]


@pytest.mark.parametrize(
    ("declared", "record", "tokens"),
    [
        ("t", {"t": ["disk", "full"]}, ["disk", "full"]),
        ("t", {"t": ["b", "a", "b", "a"]}, ["b", "a"]),
        ("t", {"t": []}, []),
        ("t", {"t": None}, []),
        ("t", {}, []),
        ("a.t", {"a": 3}, []),
        ("a.t", {"a": {"t": ["x"]}, "a.t": ["y"]}, ["x"]),
        (["a.t"], {"a": {"t": ["x"]}, "a.t": ["y"]}, ["y"]),
        # Empty strings are left out; others are kept as they are written.
        ("t", {"t": ["", " ", "a b", "A", ""]}, [" ", "a b", "A"]),
        # Integers are the strings of their digits.
        ("t", {"t": [17, "17", -3, 2**63]}, ["17", "-3", "9223372036854775808"]),
        ("t", {"t": ["e\u0301", "\u00e9"]}, ["\u00e9"]),
        ({"path": "t", "lower_case": True}, {"t": ["A", "a", "E\u0301", 3]}, ["a", "\u00e9", "3"]),
        ({"path": "t", "stop_words": ["a", "7"]}, {"t": ["a", "A", 7]}, ["A"]),
        (
            {"path": "t", "lower_case": True, "stop_words": ["THE"]},
            {"t": ["The", "end"]},
            ["end"],
        ),
        (
            {"path": "t", "tokenizer": "words"},
            {"t": "Disk full: disk /var"},
            ["Disk", "full", "disk", "var"],
        ),
        (
            {"path": "t", "tokenizer": "words", "lower_case": True, "stop_words": ["is"]},
            {"t": "Disk IS full: disk"},
            ["disk", "full"],
        ),
        ({"path": "t", "tokenizer": "words"}, {"t": "cafe\u0301"}, ["caf\u00e9"]),
        ({"path": "t", "tokenizer": "words"}, {"t": ""}, []),
        ({"path": "t", "tokenizer": "words"}, {"t": None}, []),
        ({"path": "t", "tokenizer": "split:,"}, {"t": "a,b,,a, c"}, ["a", "b", " c"]),
        ({"path": "t", "tokenizer": "ngrams:2"}, {"t": "abab"}, ["ab", "ba"]),
        ({"path": "t", "tokenizer": "ngrams:2", "lower_case": True}, {"t": "ß"}, ["ss"]),
    ],
)
def test_tokens_of_a_record(declared: object, record: object, tokens: list[str]) -> None:
    assert read(declared, record) == tokens


WORDS = {"path": "t", "tokenizer": "words"}
SPLIT = {"path": "t", "tokenizer": "split:[,;]"}
MANY = [str(it) for it in range(10_000)]


@pytest.mark.parametrize(
    ("declared", "found", "names"),
    [
        ("t", "disk full", ["list of tokens", "a string"]),
        ("t", 3, ["list of tokens", "a number"]),
        ("t", {"a": 1}, ["list of tokens", "an object"]),
        ("t", ["a", None], ["strings or integers", "item 1 is null"]),
        ("t", [True], ["strings or integers", "item 0 is a boolean"]),
        ("t", ["a", 3, 0.5], ["strings or integers", "item 2 is a number"]),
        ("t", [["a"]], ["strings or integers", "item 0 is a list"]),
        ("t", [*MANY, "x"], ["at most 10,000 tokens", "10,001"]),
        ("t", [*map(str, range(1_000_000))], ["at most 10,000 tokens", "1,000,000"]),
        ("t", ["b", "é" * 512 + "a"], ["at most 1,024 bytes", f"{'é' * 20}…", "1,025"]),
        ("t", ["\ud800"], ["not valid Unicode"]),
        (WORDS, ["disk"], ["must be a string", "a list"]),
        (WORDS, False, ["must be a string", "a boolean"]),
        (WORDS, "\ud800", ["not valid Unicode"]),
        (WORDS, "a" * 65_537, ["at most 65,536 characters", "65,537"]),
        (WORDS, "a " + "b" * 1_025, ["at most 1,024 bytes", f"{'b' * 40}…", "1,025"]),
        (WORDS, " ".join([*MANY, "x"]), ["at most 10,000 tokens", "10,001"]),
        (SPLIT, "," * 10_001, ["at most 10,000 separators", "more"]),
        (SPLIT, "\ud800", ["not valid Unicode"]),
        (
            {"path": "t", "tokenizer": "ngrams:5"},
            "".join(map(chr, range(0x4E00, 0x4E00 + 10_005))),
            ["at most 10,000 tokens", "10,001"],
        ),
    ],
)
def test_a_value_that_is_not_a_set_of_tokens_is_rejected(
    declared: object, found: object, names: list[str]
) -> None:
    with pytest.raises(RejectedEventError) as rejected:
        read(declared, {"t": found})
    assert rejected.value.reason == Reason.BAD_TOKENS
    assert_names(rejected.value.detail, "field 't'", *names)


# With the sort of NFC 10⁶ of these marks would take minutes.
MARKS = "a" + "\u0301\u0323" * 500_000


@pytest.mark.parametrize("tokenizer", ["list", "words", "split:,", "split:[,;]", "ngrams:3"])
@pytest.mark.parametrize("lower_case", [False, True])
def test_a_long_run_of_marks_is_rejected_before_it_is_normalised(
    tokenizer: str, *, lower_case: bool
) -> None:
    declared = {"path": "t", "tokenizer": tokenizer, "lower_case": lower_case}
    is_list = tokenizer == "list"
    for marks in ("o" + "\u0301" * 31, MARKS if is_list else MARKS[:65_536]):
        text = f"disk {marks}"
        found = ["disk", marks] if is_list else text[:65_536]
        with pytest.raises(RejectedEventError) as rejected:
            read(declared, {"t": found})
        assert rejected.value.reason is Reason.BAD_TOKENS
        assert_names(rejected.value.detail, "field 't'", "at most 30 combining marks")


def test_sets_at_their_limits_are_read() -> None:
    assert read("t", {"t": MANY * 2}) == MANY
    assert read("t", {"t": ["é" * 512]}) == ["é" * 512]
    assert read("t", {"t": ["o" + "\u0324" * 30]}) == ["o" + "\u0324" * 30]
    assert read({**WORDS, "stop_words": ["x"]}, {"t": " ".join([*MANY, "x"])}) == MANY
    assert read({"path": "t", "tokenizer": "ngrams:3"}, {"t": "a" * 65_536}) == ["aaa"]


MEMBERS = st.lists(
    st.text(st.sampled_from("abÉe\u0301ß"), max_size=3) | st.integers(-2, 2), max_size=8
)


@given(members=MEMBERS, lower_case=st.booleans())
def test_repeated_tokens_are_one_token(members: list[str | int], *, lower_case: bool) -> None:
    declared = {"path": "t", "lower_case": lower_case}
    found = read(declared, {"t": members})
    assert len(set(found)) == len(found)
    assert found == read(declared, {"t": [*members, *members]})
    assert set(found) == {it for member in members for it in read(declared, {"t": [member]})}
    # Tokens are read as themselves.
    assert read("t", {"t": found}) == found


def sets_of(records: list[Any], **declared: object) -> tuple[list[set[str]] | None, list[str], int]:
    """Return the sets of the events, the problems, and the number of filtered records."""
    events, rejected, filtered = intake(declared, records)
    found = None
    if events is not None and events.columns:
        column = events.columns["tokens"]
        assert isinstance(column, SetsColumn)
        found = [{token.decode() for token in it} for it in column.to_list()]
    return found, [f"{row}: {detail}" for row, detail in rejected], filtered


def test_events_keep_their_sets_beside_rejected_records() -> None:
    records = [
        TIMED | {"t": ["a", "b"]},
        TIMED | {"t": "a"},
        TIMED,
        # The other fields are checked first.
        TIMED | {"t": "a", "time": None},
        TIMED | {"t": ["b", "c"]},
        TIMED | {"t": [MARKS]},
    ]
    sets, refused, filtered = sets_of(records, tokens="t")
    assert (sets, filtered) == ([{"a", "b"}, set(), {"b", "c"}], 0)
    string, time, marks = refused
    assert_names(string, "1: bad_tokens", "field 't'", "got a string")
    assert_names(time, "3: wrong_type", "field 'time'", "'None'", "microseconds")
    assert_names(marks, "5: bad_tokens", "field 't'", "at most 30 combining marks")


def test_a_stream_without_tokens_reads_no_tokens() -> None:
    assert sets_of([TIMED | {"tokens": 3, "t": True}]) == (None, [], 0)


def test_records_that_a_stream_filters_have_no_bad_tokens() -> None:
    declared = {"attributes": {"rule": "rule"}, "where": {"rule": "a"}, "tokens": "t"}
    records = [
        TIMED | {"rule": rule, "t": tokens}
        for rule in ("a", "b")
        for tokens in (["x"], 3, ["x", "y"], None)
    ]
    sets, (refused,), filtered = sets_of(records, **declared)
    assert (sets, filtered) == ([{"x"}, {"x", "y"}, set()], 4)
    assert_names(refused, "1: bad_tokens", "field 't'", "got a number")


def test_the_column_has_each_token_once() -> None:
    events, _, _ = intake({"tokens": "t"}, [TIMED | {"t": ["a", "b"]}, TIMED | {"t": ["b", "a"]}])
    assert events is not None
    column = events.columns["tokens"]
    assert isinstance(column, SetsColumn)
    # In the order of the records, whatever the hash function is.
    assert column.values.to_list() == [b"a", b"b"]
    assert column.codes.tolist() == [0, 1, 1, 0]


def test_tokens_may_be_the_field_of_another_declaration() -> None:
    declared = {"attributes": {"message": "m"}, "tokens": {"path": "m", "tokenizer": "words"}}
    events, _, _ = intake(declared, [orjson.dumps(TIMED | {"m": "disk full"})])
    assert events is not None
    assert set(events.columns) == {"attribute.message", "tokens"}
