"""Processes that tests find and end."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.command import start_of

# It has a name with a space and a parenthesis.
_CHILD = "open('/proc/self/comm', 'w').write('a) Z b'); print(flush=True); input()"


def test_process_has_one_start_and_an_ended_one_has_none() -> None:
    # An interpreter with the program above.
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    start = start_of(child.pid)
    assert int(start) >= int(start_of(os.getpid()))
    assert start_of(child.pid) == start
    child.stdin.write(b"\n")
    child.stdin.flush()
    # It has ended, but its id is not free yet.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) == ""
    child.communicate()
    assert start_of(child.pid) == ""
