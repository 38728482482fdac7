"""The tests that `make test` runs once more, uncompiled or with checked array bounds."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_tests_of_every_package_with_kernels_run_once_more() -> None:
    listed = subprocess.run(
        ["make", "--silent", "--eval", "list: ; @echo $(KERNEL_TESTS)", "list"],  # noqa: S607 - the make of the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folders = {ROOT / name for name in listed.stdout.split()}
    assert ROOT / "tests" / "conformance" in folders
    files = (ROOT / "correlation").rglob("*.py")
    packages = {path.parent for path in files if "@njit" in path.read_text(encoding="utf-8")}
    tests = {ROOT / "tests" / "unit" / package.relative_to(ROOT) for package in packages}
    assert len(tests) > 5
    assert not {it for it in tests if folders.isdisjoint((it, *it.parents))}
    assert all(it.is_dir() for it in folders)
