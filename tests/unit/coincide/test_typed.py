"""Programs that import the typed reader are checked with its types."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("coincide", "correlation")
CONSUMER = """\
from coincide.alarms import AlarmReader, TimingAlarm
for alarm in AlarmReader().read(b"", b"{}", ()):
    if isinstance(alarm, TimingAlarm):
        number: int = alarm.condition
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_package_says_that_it_has_types(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in project["tool"]["setuptools"]["package-data"][package]


def test_program_that_uses_the_reader_is_checked(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    base = str(tmp_path / "venv")
    places = sysconfig.get_paths("venv", vars={"base": base, "platbase": base})
    for package in PACKAGES:
        shutil.copytree(ROOT / package, Path(places["purelib"]) / package)
    (tmp_path / "consumer.py").write_text(CONSUMER)
    python = Path(places["scripts"]) / "python"
    # The program must find the copies, not this checkout.
    environment = {name: it for name, it in os.environ.items() if "PYTHONPATH" not in name}
    # mypy, on a program of this test.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "mypy", "--python-executable", str(python), "consumer.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    first = done.stdout.splitlines()[0]
    assert first.startswith("consumer.py:4: error: ")
    assert first.endswith("[assignment]")
    assert done.stdout.count("error: ") == 1
