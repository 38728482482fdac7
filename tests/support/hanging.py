"""A broker that hangs: its connections stay open, but it does not respond."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def _state(thread: Path) -> str:
    """Return the kernel's letter for the state of a thread; "T" means stopped."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
