"""End child processes that end at the end of their standard input."""

from __future__ import annotations

import subprocess


def end_child(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Close the standard input of a process, and wait until it has ended.

    Parameters
    ----------
    process : Popen
        The process, which ends at the end of its standard input.
    seconds : float
        Time after which it is killed.
    """
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
