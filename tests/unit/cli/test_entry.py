"""Ctrl-C at any time ends a command with exit code 130 and no traceback, even while it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

# Python reports each import on standard error, as it ends.
_REPORT = "import time:"


@pytest.mark.parametrize("module", ["typer", "pydantic", "rich.console", "yaml", "numpy"])
def test_interrupt_during_imports_ends_quietly(module: str, tmp_path: Path) -> None:
    # Nothing is ever written to it: the command waits here if the interrupt comes after an import.
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    arguments = ["replay", "-f", str(fifo), "--events", "a=a.jsonl"]
    # Not `python -m`: Python may then end by the signal, although the program exits with a code.
    script = Path(sysconfig.get_path("scripts"), "coincide")
    command = [sys.executable, "-X", "importtime", str(script), *arguments]
    with subprocess.Popen(  # noqa: S603 - the command under test
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(_REPORT) and line.split("|")[-1].strip() == module:
                process.send_signal(signal.SIGINT)
                break
        said = [line for line in process.stderr if not line.startswith(_REPORT)]
        assert process.wait(PATIENCE_SECONDS) == 130
    assert said == []


def test_interrupt_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from cli.entry import main\n"
        "try: main(['--version'])\n"
        "finally: print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    done = subprocess.run(  # noqa: S603 - as above
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "True"
