"""Checks of the environment."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cli.settings import read_settings
from cli.stack.doctor import Check, examine, show

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("version", "fits"), [("3.10.9", False), ("3.11.0", True), ("3.14.0", True)]
)
def test_python_must_be_a_version_of_the_package(
    version: str, *, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.python_version", lambda: version)
    monkeypatch.setenv("COINCIDE_JARS", str(tmp_path))
    settings = read_settings(url="http://127.0.0.1:1", bootstrap="127.0.0.1:1")
    python = next(it for it in examine(settings) if it.name == "Python")
    assert (python.ok, "is required" in python.found) == (fits, not fits)


def test_answer_of_another_server_is_shown_as_it_is() -> None:
    found = "http://[::1]:8080 answers [red]\x1b[2J\nforged"
    console = Console(width=100, highlight=False)
    with console.capture() as captured:
        show([Check("service", ok=False, essential=False, found=found)], console)
    assert r"http://[::1]:8080 answers [red]\x1b[2J\nforged" in captured.get()


def test_environment_is_examined_without_pyspark() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import cli.stack.doctor"
    # The program is this test's own.
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603
