"""Memory of the job's processes on the machine of its driver.

Linux reports it in /proc; on other systems it is not known. A page that several processes share is
divided among them: Python workers are forked, and share most of their pages.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.worker import worker_daemon

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVER, JAVA, WORKERS = "driver", "java", "workers"
_PROC = Path("/proc")
_LOOK_SECONDS = 10.0


class MemoryUse:
    """Memory of the driver, its Java process, and the Python workers.

    Parameters
    ----------
    java : int
        Id of the Java process. Without `spark-submit` it is a child of the driver; with it, the
        parent.
    proc : Path
        File system of processes.
    """

    def __init__(self, java: int, proc: Path = _PROC) -> None:
        self._java = java
        self._proc = proc
        self._look_at = 0.0
        self._found: Mapping[str, int] = {}

    def look(self) -> Mapping[str, int]:
        """Return the bytes by process, measured every few seconds; empty if they are not known."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            self._found = self._measure()
        return self._found

    def _measure(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for pid, name in ((os.getpid(), DRIVER), (self._java, JAVA)):
            nbytes = resident_bytes(pid, self._proc)
            if nbytes is None:
                return {}
            found[name] = nbytes
        found[WORKERS] = sum(resident_bytes(pid, self._proc) or 0 for pid in self._workers())
        return dict(found)

    def _workers(self) -> list[int]:
        """Return the ids of the daemons and workers, which the driver or Java has started."""
        parents = {}
        for entry in self._proc.iterdir():
            if entry.name.isdigit() and (stat := _read(entry / "stat")):
                # The name of the program, in parentheses, may contain anything.
                parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
        family = {self._java, os.getpid()}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        name = worker_daemon.__name__
        return [pid for pid in family if name in _read(self._proc / str(pid) / "cmdline")]


def resident_bytes(pid: int, proc: Path = _PROC) -> int | None:
    """Return the memory of a process in bytes; None if it has ended or is not known."""
    for line in _read(proc / str(pid) / "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
