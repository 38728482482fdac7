"""The piece of work by which the image compiles its kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_warm_up_fills_the_cache_and_the_next_run_adds_nothing(tmp_path: Path) -> None:
    first = _run(tmp_path)
    ways = {"simple", "ssort", "eager", "lazy", "lazy_lookup", "indexed", "choosing"}
    ways |= {"best", "unmatched", "meetings", "histogram_filter"}
    # Of events with histograms, with s-windows and without.
    kernels = {".".join(name.split(".")[:2]).split("-")[0] for name in first}
    assert kernels >= {
        "search._probe_kernel",
        "search._probe_windows_kernel",
        "lazy_lookup._collect_probed_kernel",
        "indexed._find_ranges_kernel",
    }
    assert {name.split(".")[0] for name in first} >= {"columns", "partitioning"} | ways
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
