"""Processes that hang: their connections stay open, but they do not respond."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.command import send_signal
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cli.stack.broker import EmbeddedBroker


@contextmanager
def hanging(broker: EmbeddedBroker) -> Iterator[None]:
    """Stop the threads of a broker until the context ends."""
    assert broker.process is not None
    assert broker.process.pid is not None
    threads = Path(f"/proc/{broker.process.pid}/task")
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        # Threads stop one after the other, and a running thread may still respond.
        wait_until(lambda: {_state(thread) for thread in threads.iterdir()} == {"T"})
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def stop_processes(find: Callable[[], Iterable[int]]) -> set[int]:
    """Stop the processes that a function finds, until all of them are stopped; return their ids."""
    known: set[int] = set()

    def are_stopped() -> bool:
        found = set(find())
        for pid in found:
            send_signal(pid, signal.SIGSTOP)
        known.update(found)
        return bool(found) and all(process_state(pid) in ("T", "Z", "") for pid in found)

    wait_until(are_stopped)
    return known


def process_state(pid: int) -> str:
    """Return the kernel's letter for the state of a process; "T" means stopped, "" ended."""
    try:
        return _state(Path(f"/proc/{pid}"))
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _state(thread: Path) -> str:
    """Return the kernel's letter for the state of a thread; "T" means stopped."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
