"""Load, usage and table of the soak benchmark."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from benchmarks.soak import usage
from benchmarks.soak.__main__ import Soaked, growing, report
from benchmarks.soak.load import BEGIN_US, HOUR_US, HourlyLoad, make_stream
from tests.crash.judge import Verdict
from tests.crash.load import SETS
from tests.support.workload import Occurrence

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = 2_000


@pytest.fixture
def load() -> HourlyLoad:
    """Return a load that is not connected."""
    return HourlyLoad("127.0.0.1:1", "p", 0, EVENTS)


def test_events_of_an_hour_are_in_it_and_late_ones_two_hours_before(load: HourlyLoad) -> None:
    for hour in (0, 5):
        taken = list(load._take(hour))  # noqa: SLF001 - it sends nothing
        events = [it for it in taken if isinstance(it, Occurrence)]
        assert 0.005 * EVENTS < len(taken) - len(events) < 0.02 * EVENTS
        begin = BEGIN_US + hour * HOUR_US
        late = [it for it in events if it.id.startswith("late.")]
        others = [it for it in events if not it.id.startswith("late.")]
        assert sum(it.stream in "ab" for it in others) == EVENTS
        assert all(begin < it.earliest <= it.latest <= begin + HOUR_US for it in others)
        assert all(begin - 2 * HOUR_US < it.earliest < begin - HOUR_US for it in late)
        assert bool(late) == (hour > 0)
        assert len({it.key for it in late}) == len(late)
        assert len({it.id for it in events}) == len(events)
    assert make_stream(SETS, "p").tokens is not None


def test_memory_and_files_of_a_process_are_counted(tmp_path: Path) -> None:
    assert usage._memory(os.getpid()) > 10 * 2**20  # noqa: SLF001 - of this module
    assert usage._open_files(os.getpid()) > 2  # noqa: SLF001 - of this module
    (tmp_path / "file").write_bytes(b"123")
    assert usage._sizes([tmp_path, tmp_path / "file", tmp_path / "none"]) == [3]  # noqa: SLF001


def test_only_what_grows_in_the_last_quarter_is_growing() -> None:
    one = usage.Usage(100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
    flat = [one._replace(jvm=10)] * 3 + [one] * 9
    assert growing(flat) == []
    more = [one._replace(python=100 + 3 * hour, metrics_bytes=hour) for hour in range(12)]
    assert growing(more) == ["python: 112, then 130"]


def test_table_has_the_first_and_every_third_hour() -> None:
    one = usage.Usage(2**20, 2 * 2**20, 0, 0, 7, 3, 0, 0, 0, 1_234)
    verdict = Verdict(Counter({"near": 10}), ["near|1"], [], [], [])
    found = report(Soaked([one] * 8, verdict, 5_000, 1))
    assert [row[0] for row in found.rows] == ["1", "3", "6", "8"]
    assert found.rows[0][1:3] == ["1 MiB", "2 MiB"]
    assert found.rows[0][-1] == "1,234"
    assert "Of 10 expected results, 1 were missing" in found.text
