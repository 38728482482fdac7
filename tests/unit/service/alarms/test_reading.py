"""The state of the reading of topics: problems by topic, logged when they begin and end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from service.alarms.reading import ForeignRecords, ReadingState
from tests.support.messages import assert_names

if TYPE_CHECKING:
    import pytest


def test_problem_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    state = ReadingState()
    state.keep(frozenset({"t", "u"}))
    for problem in ("is away", "is gone"):
        state.report("t", "fetch", problem)
    state.report("t", "records", "is odd")
    state.report("other", "fetch", "is ignored")
    assert state.problems() == {"t": "is gone; is odd", "u": None}
    state.report("t", "fetch", None)
    state.report("t", "fetch", None)
    assert state.problems() == {"t": "is odd", "u": None}
    fetch, records, again = caplog.messages
    assert fetch.endswith(" of t: is away")
    assert records.endswith(" of t: is odd")
    assert_names(again, "t", "read again")
    state.keep(frozenset({"u"}))
    assert state.problems() == {"u": None}


def test_foreign_records_are_counted() -> None:
    foreign = ForeignRecords()
    foreign.count("t", 0, 7)
    assert foreign.count("t", 1, 8).startswith("2 records are not results")
    foreign.forget("t")
    assert foreign.count("t", 0, 9).startswith("1 records")
