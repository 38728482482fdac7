"""A soak run of an hour of stream time: a restart of the broker, bad records, changed conditions.

`python -m benchmarks.soak` runs a day.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from benchmarks.soak.__main__ import Soak
from benchmarks.soak.load import HourlyLoad, make_stream
from tests.crash.installation import Installation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

# Enough for results of every condition.
EVENTS = 20_000


def test_results_of_an_hour_are_exact(tmp_path: Path) -> None:
    make_load = partial(HourlyLoad, seed=1, events=EVENTS)
    with Installation(tmp_path, make_load, make_stream) as on:
        soaked = Soak(on).run(hours=1)
        assert on.load.bad
    verdict = soaked.verdict
    assert (verdict.missing, verdict.extra, verdict.twice, verdict.problems) == ([], [], [], [])
    names = ("near", "self", "best", "unmatched", "factored", "query", "list", "added-0", "varied")
    assert min(verdict.expected[name] for name in names) > 0
    assert verdict.expected.total() > 10_000
    assert soaked.restarts == 0
    (usage,) = soaked.usages
    assert min(usage.jvm, usage.python, usage.service, usage.broker) > 50 * 2**20
    assert min(usage.open_files, usage.checkpoint_files, usage.state_bytes) > 0
