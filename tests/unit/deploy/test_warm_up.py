"""The warm-up that compiles the kernels of the image."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import correlation.engine.conditions
import correlation.engine.registered
import correlation.kinds
from correlation.config_records import read_config_record
from correlation.engine.program import Block, Program
from correlation.kinds import KINDS
from correlation.timing.conditions import ALGORITHM_CHOICES, DEFAULT_ALGORITHM
from correlation.warming import Algorithms
from spark_jobs.worker import warm_up
from tests.support.kernel_cache import copy_kernels
from tests.toy import toy_kind

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("shapes", ["intervals", "templates", "histograms"])
@pytest.mark.parametrize("algorithms", ["defaults", "all"])
def test_no_condition_of_the_warm_up_is_refused(algorithms: Algorithms, shapes: str) -> None:
    # Kinds with the usual streams share one program.
    (group,) = warm_up.group_kinds(algorithms, shapes)
    program = Program(group.streams, dict.fromkeys(group.streams, 1))
    metrics = program.advance(Block(group.controls, [], []), lambda: 0).metrics
    states = {status["state"] for status in metrics["conditions"].values()}
    assert len(metrics["conditions"]) == len(group.controls) > 0
    assert states == {"running"}, metrics["conditions"]


@pytest.mark.parametrize(
    ("algorithms", "chosen"),
    [("defaults", {DEFAULT_ALGORITHM, None}), ("all", {*ALGORITHM_CHOICES, None})],
)
def test_job_warms_up_the_default_algorithms_and_the_image_all(
    algorithms: Algorithms, chosen: set[str | None]
) -> None:
    (group,) = warm_up.group_kinds(algorithms, "intervals")
    resources = [read_config_record(it.key, it.record) for it in group.controls]
    assert {it.document.get("algorithm") for it in resources} == chosen


def test_kind_is_warmed_up_on_its_own_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    (kind,) = toy_kind.KINDS
    kinds = {**KINDS, kind.name: kind}
    for module in (correlation.engine.conditions, correlation.engine.registered, warm_up):
        monkeypatch.setattr(module, "KINDS", kinds)
    monkeypatch.setattr(correlation.kinds, "KINDS", kinds)
    _, group = warm_up.group_kinds("defaults", "intervals")
    assert (list(group.streams), len(group.controls)) == (["doors"], 1)
    monkeypatch.setattr(warm_up, "KINDS", {kind.name: kind})
    # Each event of the three blocks lasts for at least 1 ms.
    assert warm_up.warm_up() == 3 * 24


@pytest.mark.slow
def test_warm_up_fills_the_cache_and_the_next_run_adds_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    # The kernels that other tests have compiled are not compiled again.
    shared = os.environ.get("NUMBA_CACHE_DIR")
    if shared is not None and Path(shared).is_dir():
        copy_kernels(Path(shared), cache)
    loaded, saved = _run(cache)
    ways = {"simple", "ssort", "eager", "lazy", "lazy_lookup", "indexed", "choosing"}
    ways |= {"best", "unmatched", "meetings", "filter"}
    # Of events with histograms, with s-windows and without.
    kernels = {".".join(name.split(".")[:2]).split("-")[0] for name in loaded | saved}
    assert kernels >= {
        "lazy._correlate_block_kernel",
        "table._fill_cells_kernel",
        "pieces._split_by_windows_kernel",
        "lazy_lookup._collect_probed_kernel",
        "indexed._find_ranges_kernel",
        "nearest._first_event_kernel",
        "nearest._last_event_kernel",
        "numbering._number_values_kernel",
    }
    assert {name.split(".")[0] for name in kernels} >= {"columns", "partitioner"} | ways
    _, added = _run(cache)
    assert added == set()


def _run(cache: Path) -> tuple[set[str], set[str]]:
    """Run it as the Dockerfile does; return the files of kernels it has loaded and saved."""
    ran = subprocess.run(
        [sys.executable, "deploy/warm_up.py"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DEBUG_CACHE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = re.findall(r"^\[cache\] data loaded from '.*/(.+)'$", ran.stdout, re.MULTILINE)
    saved = re.findall(r"^\[cache\] data saved to '.*/(.+)'$", ran.stdout, re.MULTILINE)
    return set(loaded), set(saved)
