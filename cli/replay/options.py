"""Options of a replay, and its files of events."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from decimal import Decimal

Format = Literal["jsonl", "csv", "parquet"]
STDIN = Path("-")
# Also the number of slots: the output does not depend on the number of processes.
MAX_PROCESSES = 16
_EXTENSIONS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_ONLY_FILES = ("--events", "--format", "--key", "--sort")
_ONLY_TOPICS = ("--bootstrap",)
# Below this size, starting more processes takes longer than it saves.
_BYTES_WORTH_PROCESSES = 16 * 1024 * 1024
# A row of a compressed Parquet file takes about a quarter of the bytes that it takes as text.
_PARQUET_FACTOR = 4
# A record of a topic has about this many bytes.
_RECORD_BYTES = 150


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events.

    Parameters
    ----------
    stream
        Stream of the events.
    partition
        Number of the file among those of the stream; each is read like a Kafka partition.
    path
        Path of the file; ``-`` is standard input.
    format
        Format of the rows.
    """

    stream: str
    partition: int
    path: Path
    format: Format

    @property
    def size(self) -> int | None:
        """Size of the file in bytes, or None if it is unknown."""
        try:
            return self.path.stat().st_size if self.path.is_file() else None
        except OSError:
            return None

    @property
    def text_bytes(self) -> int | None:
        """Approximate size of the rows as text, or None if it is unknown."""
        factor = _PARQUET_FACTOR if self.format == "parquet" else 1
        return None if self.size is None else self.size * factor

    @property
    def place(self) -> dict[str, str | int]:
        """Fields of a rejected row that name the file."""
        return {"file": str(self.path)}

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class EventPartition:
    """Records of a partition of a stream's topic that exist when the replay begins.

    Parameters
    ----------
    stream
        Stream of the events.
    partition
        Number of the partition.
    topic
        Topic of the stream.
    begin, end
        Offset range of the records.
    """

    stream: str
    partition: int
    topic: str
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets."""
        return self.end - self.begin

    @property
    def text_bytes(self) -> int:
        """Approximate size of the records."""
        return self.size * _RECORD_BYTES

    @property
    def place(self) -> dict[str, str | int]:
        """Fields of a rejected record that name the partition."""
        return {"topic": self.topic, "partition": self.partition}

    def __str__(self) -> str:
        return f"{self.topic}, partition {self.partition}"


Input = EventFile | EventPartition


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay.

    Parameters
    ----------
    resources
        Files of streams and conditions.
    files
        Files of events; empty if the events are read from topics.
    conditions
        Names of the conditions to evaluate; empty: all.
    keys
        (stream, path of the join key), for streams that use the Kafka record key as join key.
    sort
        Sort each file by the events' latest times first.
    processes
        Number of processes; None: chosen by the size of the inputs.
    alarms, rejects
        Output files; None: alarms go to standard output, rejected rows are not written.
    thresholds
        Thresholds at which pairs are counted instead of writing alarms; empty: alarms.
    max_record_bytes
        Max length of a row or record; longer ones are rejected.
    force
        Replace existing files of alarms and rejects.
    """

    resources: tuple[Path, ...]
    files: tuple[EventFile, ...] = ()
    conditions: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    sort: bool = False
    processes: int | None = None
    alarms: Path | None = None
    rejects: Path | None = None
    thresholds: tuple[Decimal, ...] = ()
    max_record_bytes: int = 1_000_000
    force: bool = False

    def __post_init__(self) -> None:
        read = [*self.resources, *(file.path for file in self.files)]
        _check_paths(
            read, self.alarms, self.rejects, counted=bool(self.thresholds), force=self.force
        )


def count_processes(given: int | None, inputs: Iterable[Input]) -> int:
    """Return the number of processes to use.

    Parameters
    ----------
    given
        Number of processes of the options; None: chosen by the size of the inputs.
    inputs
        Files or partitions of events.
    """
    if given is not None:
        return given
    sizes = [it.text_bytes for it in inputs]
    known = sum(size for size in sizes if size is not None)
    return usable_cores() if None in sizes or known >= _BYTES_WORTH_PROCESSES else 1


def check_source(given: Collection[str], *, topics: bool) -> None:
    """Check that the options fit the source of the events: files, or topics.

    Parameters
    ----------
    given
        Names of the given options.
    topics
        Whether the events come from topics.

    Raises
    ------
    UsageError
        Options do not fit, or the source is missing; names the options.
    """
    wrong = [name for name in (_ONLY_FILES if topics else _ONLY_TOPICS) if name in given]
    if wrong and topics:
        raise UsageError(
            f"{', '.join(wrong)}: only for events in files; leave it out with --topics"
        )
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: only for events in Kafka; add --topics")
    if not topics and "--events" not in given:
        raise UsageError("--events: is missing; give --events STREAM=FILE, or --topics")


def event_files(arguments: Iterable[str], otherwise: Format | None) -> tuple[EventFile, ...]:
    """Parse ``STREAM=FILE`` arguments.

    Parameters
    ----------
    arguments
        The arguments; their order numbers the files of a stream.
    otherwise
        Format of standard input and of files with an unknown extension.

    Raises
    ------
    UsageError
        An argument does not have this form, is repeated, or its format is unknown.
    """
    found: list[EventFile] = []
    counts: Counter[str] = Counter()
    for argument in arguments:
        stream, path = split_assignment(argument, "--events", "STREAM=FILE")
        form = _EXTENSIONS.get(Path(path).suffix.lower(), otherwise)
        if form is None:
            raise UsageError(
                f"--events {argument}: the format of {path} is unknown; give --format "
                f"{', '.join(get_args(Format)[:-1])} or {get_args(Format)[-1]}"
            )
        if form == "parquet" and Path(path) == STDIN:
            raise UsageError(
                f"--events {argument}: Parquet cannot be read from standard input; name a file"
            )
        if any((file.stream, file.path) == (stream, Path(path)) for file in found):
            raise UsageError(f"--events {argument} is given twice; remove one")
        found.append(EventFile(stream, counts[stream], Path(path), form))
        counts[stream] += 1
    return tuple(found)


def split_assignment(argument: str, option: str, wanted: str) -> tuple[str, str]:
    """Split an argument at its first equals sign.

    Raises
    ------
    UsageError
        One side is empty.
    """
    name, _, value = argument.partition("=")
    if not name or not value:
        raise UsageError(f"{option} {argument}: is not valid; write {option} {wanted}")
    return name, value


def _check_paths(
    read: Sequence[Path],
    alarms: Path | None,
    rejects: Path | None,
    *,
    counted: bool,
    force: bool,
) -> None:
    """Check that no file is read twice, both read and written, or overwritten by mistake."""
    if counted and alarms is not None:
        raise UsageError(
            "--alarms: cannot be combined with --thresholds, which only counts pairs; remove one"
        )
    if list(read).count(STDIN) > 1:
        raise UsageError("standard input (-) is given twice; it can be read only once")
    written = [path for path in (alarms, rejects) if path is not None]
    for path in written:
        if any(_is_same(path, other) for other in read):
            raise UsageError(f"{path} is both an input and an output; name another output")
    if len(written) > 1 and (_is_same(*written) or _is_same_new(*written)):
        raise UsageError("--alarms and --rejects: are the same file; name another one")
    for option, file in (("--alarms", alarms), ("--rejects", rejects)):
        # An existing device or pipe may be written to.
        if file is not None and file.is_file() and not force:
            raise UsageError(
                f"{option} {file}: the file exists; name another one, or replace it with --force"
            )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and other.is_file() and one.samefile(other)
    except OSError:
        return False


def _is_same_new(one: Path, other: Path) -> bool:
    """Return whether two paths are the same new file; a device or pipe may be named twice."""
    return not one.exists() and one.absolute() == other.absolute()


def usable_cores() -> int:
    """Return the number of cores that this process may use, at most `MAX_PROCESSES`."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(count, MAX_PROCESSES)
