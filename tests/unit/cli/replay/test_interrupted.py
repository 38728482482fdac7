"""Ctrl-C during a replay with several processes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.support.command import COMMAND, process_tree
from tests.support.patience import PATIENCE_SECONDS, wait_until

RESOURCES = """\
{kind: stream, name: a, topic: a, max_uncertainty: 20ms, max_delay: 1s}
---
{kind: mutual_deadline, name: near, a: a, b: a, window: 30ms, threshold: 0.6}
"""


def test_interrupt_while_workers_start_ends_all_processes(tmp_path: Path) -> None:
    resources = tmp_path / "resources.yaml"
    resources.write_text(RESOURCES)
    arguments = ["replay", "-f", str(resources), "--events", "a=-", "--format", "jsonl"]
    # Standard input stays open: the replay waits for rows.
    process = subprocess.Popen(  # noqa: S603 - the command under test
        [*COMMAND, *arguments, "--processes", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C reaches all processes of a group.
        start_new_session=True,
    )
    wait_until(lambda: len(list(process_tree(process.pid))) >= 4 or process.poll() is not None)
    processes = list(process_tree(process.pid))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_SECONDS) == 130
    assert process.stdin is not None
    process.stdin.close()
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read() == b""
    assert b"Traceback" not in process.stderr.read()
    wait_until(lambda: not any(Path(f"/proc/{it}").exists() for it in processes))
