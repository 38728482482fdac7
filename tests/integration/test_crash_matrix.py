"""A sample of the crash matrix: one fault after another in one installation.

`python -m benchmarks.crashes` runs the whole matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crash.faults import Victim, draw_fault
from tests.crash.group import Run, run_group

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# Each victim once, and a kill while the state is rebuilt.
SEEDS = (0, 7, 8, 9, 10, 11)


def test_every_result_is_written_once_whichever_process_crashes(tmp_path: Path) -> None:
    faults = [draw_fault(seed) for seed in SEEDS]
    assert {it.victim for it in faults} == set(Victim)
    runs: list[Run] = []
    verdict = run_group(tmp_path, faults, runs)
    assert len(runs) == len(faults)
    assert min(verdict.expected[name] for name in ("near", "best", "query", "merged")) > 10
    assert verdict.missing == []
    assert verdict.extra == []
    assert verdict.twice == []
    assert verdict.problems == []
