"""Memory of the processes of an installation, and the size of its files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.command import command_line, process_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.soak.load import HourlyLoad
    from tests.crash.installation import Installation


class Usage(NamedTuple):
    """Resources that an installation uses at a moment.

    Attributes
    ----------
    jvm, python, service, broker
        Memory, in bytes, in which a shared page counts in proportion (PSS): the job's JVM, its
        other processes, the service, and the broker.
    open_files
        Number of open files of the job's processes.
    checkpoint_files, checkpoint_bytes
        Files of the checkpoint.
    state_bytes
        Records of the compacted topic `PREFIX.state` in the broker, compacted or not.
    metrics_bytes
        Records of the topic `PREFIX.metrics`, which Kafka deletes by their age.
    buffered_events
        Events in the buffers of all slots.
    """

    jvm: int
    python: int
    service: int
    broker: int
    open_files: int
    checkpoint_files: int
    checkpoint_bytes: int
    state_bytes: int
    metrics_bytes: int
    buffered_events: int


def read_usage(on: Installation[HourlyLoad]) -> Usage:
    """Return what an installation uses now."""
    job = on.processes()
    java = [pid for pid in job if "java" in command_line(pid)]
    others = [pid for pid in job if pid not in java]
    broker = on.broker.process
    files = _sizes(on.checkpoint.rglob("*"))
    return Usage(
        jvm=sum(map(_memory, java)),
        python=sum(map(_memory, others)),
        service=sum(map(_memory, process_tree(on.service.pid or 0))),
        broker=0 if broker is None else _memory(broker.pid or 0),
        open_files=sum(map(_open_files, job)),
        checkpoint_files=len(files),
        checkpoint_bytes=sum(files),
        state_bytes=sum(_sizes(on.broker.data.rglob(f"{on.job.topics.state}-0/*.log"))),
        metrics_bytes=sum(_sizes(on.broker.data.rglob(f"{on.job.topics.metrics}-0/*.log"))),
        buffered_events=on.gauge("buffered_events"),
    )


def _memory(pid: int) -> int:
    """Return the proportional set size of a process in bytes; 0 after its end."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _open_files(pid: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def _sizes(paths: Iterable[Path]) -> list[int]:
    """Return the sizes of files, some of which may be removed meanwhile."""
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            if path.is_file():
                found.append(path.stat().st_size)
    return found
