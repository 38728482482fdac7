"""Records of streams with tokens, read for an explanation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.explaining import GivenRecord, read_given
from correlation.resources.records import stream_from_document
from tests.support.messages import assert_names

LOG = stream_from_document(
    "log",
    {
        "topic": "t",
        "max_uncertainty_us": 0,
        "max_delay_us": 0,
        "clock": "replay",
        "mapping": {"id": "n", "time": "at", "format": "epoch_us"},
        "partitioning": {"by": "grid"},
        "tokens": {
            "path": "message",
            "tokenizer": "words",
            "lower_case": True,
            "stop_words": ["is"],
        },
    },
)
RECORD = {"n": 1, "at": 3, "message": "Disk IS full"}


def test_a_record_and_its_event_have_the_same_tokens() -> None:
    read = read_given(LOG, GivenRecord(RECORD))
    described = read.describe()
    assert (read.tokens, described["tokens"]) == (["disk", "full"], ["disk", "full"])
    again = read_given(LOG, GivenRecord(described))
    assert (again.form, again.event) == ("event", read.event)


def test_the_tokens_of_an_event_are_not_divided_again() -> None:
    described = {"id": "1", "time": 3, "tokens": ["Disk IS", "is"]}
    assert read_given(LOG, GivenRecord(described)).tokens == ["Disk IS", "is"]


@pytest.mark.parametrize("message", [None, "", "is"])
def test_an_event_may_have_an_empty_set(message: str | None) -> None:
    described = read_given(LOG, GivenRecord(RECORD | {"message": message})).describe()
    assert (described["tokens"], described["reason"]) == ([], None)


def test_a_record_with_bad_tokens_is_explained() -> None:
    read = read_given(LOG, GivenRecord(RECORD | {"message": ["disk"]}))
    assert (read.tokens, read.describe()["tokens"]) == (None, None)
    assert_names(read.breach, "stream log", "bad_tokens", "field 'message'", "got a list")


def test_streams_without_tokens_show_none() -> None:
    described = read_given(replace(LOG, tokens=None), GivenRecord(RECORD)).describe()
    assert "tokens" not in described
