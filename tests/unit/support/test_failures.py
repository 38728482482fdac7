"""A failure is shown before the run ends, by a process with and without workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = """
from pathlib import Path
from threading import Event

def test_first():
    print("said by the test")
    assert "one" == "other"

def test_last():
    shown = Path(__file__).with_name("shown")
    # A minute, if the failure is shown at the end only.
    for _ in range(1_200):
        if shown.exists():
            break
        Event().wait(0.05)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_failure_is_shown_while_other_tests_run(tmp_path: Path, options: list[str]) -> None:
    file = tmp_path / "test_two.py"
    file.write_text(TESTS)
    command = ["-m", "pytest", "-p", "tests.support.failures", "-p", "no:cacheprovider", *options]
    environment = {it: value for it, value in os.environ.items() if not it.startswith("PYTEST_")}
    with subprocess.Popen(  # noqa: S603 - the interpreter of this run
        [sys.executable, *command, "--rootdir", str(tmp_path), str(file)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        seen = ""
        for line in run.stdout:
            seen += line
            if "said by the test" in line and "Captured stdout" in seen:
                break
        (tmp_path / "shown").touch()
        rest = run.communicate()[0]
    assert "test_two.py::test_first (call)" in seen
    assert "assert 'one' == 'other'" in seen
    assert "= FAILURES =" not in seen
    assert "1 failed, 1 passed" in rest


def test_file_that_cannot_be_read_is_shown_twice(tmp_path: Path) -> None:
    file = tmp_path / "test_broken.py"
    file.write_text("import missing_module_of_a_test\n")
    command = ["-m", "pytest", "-p", "tests.support.failures", "-p", "no:cacheprovider"]
    done = subprocess.run(  # noqa: S603 - the interpreter of this run
        [sys.executable, *command, "--rootdir", str(tmp_path), str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # At once, and in the summary.
    assert done.stdout.count("No module named 'missing_module_of_a_test'") == 2
