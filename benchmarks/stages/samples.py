"""CPU time of the job: of its threads, and of the Python functions in which it is spent."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.stack import TICKS_PER_SECOND, Stopwatch, family
from cli.stack.processes import ChildProcess

Stack = tuple[str, ...]
# Names of threads, which Linux cuts at 15 characters, by what the threads do.
_JAVA_THREADS = (
    ("Executor task", "tasks"),
    ("stream executio", "plan and commit batches"),
    ("C1 Compiler", "compile"),
    ("C2 Compiler", "compile"),
    ("VM Thread", "collect garbage"),
    ("GC Thread", "collect garbage"),
)
_CLIENT_THREADS = "rdk:"
_RATE = 100
_FRAME = re.compile(r"^(?P<function>.+) \((?P<file>.+):\d+\)$")


@dataclass
class Samples:
    """CPU time of a job during a measurement.

    Attributes
    ----------
    wall, cpu : float
        Wall time, and CPU time of all processes, in seconds.
    threads : defaultdict of (str, str) to float
        CPU seconds by process ("driver", "java", "python") and what its threads do.
    stacks : Counter of Stack
        Number of samples by the frames of a Python thread, outermost first, each as
        `function (file)`. Threads that wait are left out.
    """

    wall: float = 0.0
    cpu: float = 0.0
    threads: defaultdict[tuple[str, str], float] = field(
        default_factory=partial(defaultdict[tuple[str, str], float], float)
    )
    stacks: Counter[Stack] = field(default_factory=Counter)


@contextmanager
def sampled(job: ChildProcess, folder: Path) -> Iterator[Samples]:
    """Measure the CPU time of a job; the result is complete when the block ends.

    Parameters
    ----------
    job : ChildProcess
        The job, while it runs.
    folder : Path
        Folder of the profiler's file.
    """
    if job.pid is None:
        raise ValueError("the job is not running")
    path, found = folder / "stacks", Samples()
    command = [str(Path(sys.executable).with_name("py-spy")), "record", "--subprocesses"]
    command += ["--format", "raw", "--rate", str(_RATE), "--duration", "3600"]
    profiler = subprocess.Popen(  # noqa: S603 - a pinned package
        [*command, "--output", str(path), "--pid", str(job.pid)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    watch, before = Stopwatch(job), _read_threads(job.pid)
    try:
        yield found
        found.wall, found.cpu = watch.read()
        after = _read_threads(job.pid)
    finally:
        profiler.send_signal(signal.SIGINT)
        profiler.wait()
    for thread, (role, seconds) in after.items():
        found.threads[role] += seconds - before.get(thread, (role, 0.0))[1]
    # Threads that have ended.
    found.threads["java", "other"] += max(found.cpu - sum(found.threads.values()), 0.0)
    found.stacks.update(read_stacks(path.read_text()))


def read_stacks(text: str) -> Counter[Stack]:
    """Read the profiler's lines: frames separated by semicolons, and a number of samples.

    Parameters
    ----------
    text : str
        Output of `py-spy record --format raw`.
    """
    found: Counter[Stack] = Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        matches = (_FRAME.match(frame) for frame in stack.split(";"))
        frames = tuple(f"{it['function']} ({it['file']})" for it in matches if it is not None)
        if frames:
            found[frames] += int(count)
    return found


def _read_threads(pid: int) -> dict[tuple[int, int], tuple[tuple[str, str], float]]:
    """Return process and work of each thread of the job, and its CPU seconds."""
    found = {}
    for process in family(pid):
        folder = Path("/proc") / str(process)
        try:
            program = (folder / "comm").read_text().strip()
            threads = [it for it in (folder / "task").iterdir() if it.name.isdigit()]
        except OSError:
            continue  # the process has ended
        role = "driver" if process == pid else program
        for thread in threads:
            try:
                name = (thread / "comm").read_text().strip()
                times = (thread / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
            except OSError:
                continue  # the thread has ended
            seconds = sum(map(int, times)) / TICKS_PER_SECOND
            found[process, int(thread.name)] = ((role, _work_of(role, name)), seconds)
    return found


def _work_of(role: str, thread: str) -> str:
    if role == "java":
        return next((it for name, it in _JAVA_THREADS if thread.startswith(name)), "other")
    return "client" if thread.startswith(_CLIENT_THREADS) else "python"
