"""A broker that hangs: its connections stay, and nothing is answered."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.stack.broker import EmbeddedBroker


@contextmanager
def hanging(broker: EmbeddedBroker) -> Iterator[None]:
    """Stop a broker's threads until the block ends."""
    assert broker.process is not None
    assert broker.process.pid is not None
    threads = Path(f"/proc/{broker.process.pid}/task")
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        # They stop one after the other, and one that still runs may answer.
        while {_state(thread) for thread in threads.iterdir()} != {"T"}:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def _state(thread: Path) -> str:
    """Return the letter by which the kernel names a thread's state; "T" is stopped."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
