"""The warm-up that compiles the kernels of the image."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from correlation.engine.program import Block, Program
from spark_jobs.worker.warm_up import list_controls, list_streams

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("shapes", ["intervals", "templates", "histograms"])
@pytest.mark.parametrize("algorithm", [None, "lazy_lookup"])
def test_no_condition_of_the_warm_up_is_refused(algorithm: str | None, shapes: str) -> None:
    streams = list_streams(shapes)
    controls = list(list_controls(algorithm, shapes))
    program = Program(streams, dict.fromkeys(streams, 1))
    metrics = program.advance(Block(controls, [], []), lambda: 0).metrics
    states = {status["state"] for status in metrics["conditions"].values()}
    assert len(metrics["conditions"]) == len(controls) > 0
    assert states == {"running"}, metrics["conditions"]


@pytest.mark.slow
def test_warm_up_fills_the_cache_and_the_next_run_adds_nothing(tmp_path: Path) -> None:
    first = _run(tmp_path)
    ways = {"simple", "ssort", "eager", "lazy", "lazy_lookup", "indexed", "choosing"}
    ways |= {"best", "unmatched", "meetings", "filter"}
    # Of events with histograms, with s-windows and without.
    kernels = {".".join(name.split(".")[:2]).split("-")[0] for name in first}
    assert kernels >= {
        "lazy._correlate_block_kernel",
        "windowing._find_windows_kernel",
        "pieces._split_by_windows_kernel",
        "lazy_lookup._collect_probed_kernel",
        "indexed._find_ranges_kernel",
        "nearest._first_event_kernel",
        "nearest._last_event_kernel",
        "numbering._number_values_kernel",
    }
    assert {name.split(".")[0] for name in first} >= {"columns", "partitioner"} | ways
    assert _run(tmp_path) == first


def _run(cache: Path) -> set[str]:
    """Run it as the Dockerfile does, and give the names of the cached kernels."""
    subprocess.run(
        [sys.executable, "deploy/warm_up.py"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
    )
    return {path.name for path in cache.rglob("*.nbc")}
