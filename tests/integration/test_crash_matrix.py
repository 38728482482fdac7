"""A sample of the crash matrix: one fault after another in one installation.

`python -m benchmarks.crashes` runs the whole matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crash.conditions import CONDITIONS
from tests.crash.faults import Victim, draw_fault
from tests.crash.group import Run, run_group
from tests.crash.judge import LATE_EVENTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# SHORT and OTHERS hit each victim of one machine once. SHORT kills a Python worker, the broker and
# the JVM.
SHORT = (8, 9, 13)
OTHERS = (6, 10, 11)
# They kill an executor, a Spark worker, and the master of a cluster.
CLUSTER = (1023, 1024, 1025)
# The checkpoint is lost after the state commit, in the transaction, and before the commit log.
LOSSES = (2003, 2004, 2005)


@pytest.mark.parametrize(
    "seeds",
    [
        SHORT,
        pytest.param(OTHERS, marks=pytest.mark.nightly),
        pytest.param(CLUSTER, marks=pytest.mark.nightly),
        pytest.param(LOSSES, marks=pytest.mark.nightly),
    ],
)
def test_every_result_is_written_once_whichever_process_crashes(
    tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    assert {draw_fault(seed).victim for seed in (*SHORT, *OTHERS, *CLUSTER, *LOSSES)} == set(Victim)
    faults = [draw_fault(seed) for seed in seeds]
    runs: list[Run] = []
    verdict = run_group(tmp_path, faults, runs)
    assert len(runs) == len(faults)
    assert min(verdict.expected[name] for name in (*CONDITIONS, LATE_EVENTS)) > 10
    assert verdict.missing == []
    assert verdict.extra == []
    assert verdict.twice == []
    assert verdict.problems == []
