"""Send a file of events to a topic at a given rate (``produce``)."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

import orjson
from rich.progress import DownloadColumn, TimeRemainingColumn

from cli.client.events import (
    Delivery,
    EventSender,
    Schedule,
    at_rate,
    at_recorded_times,
    close_stream,
    list_partitions,
    send_lines,
)
from cli.client.near_names import suggesting
from cli.client.rest import ServiceClient
from cli.client.topics import refuse_own
from cli.errors import UsageError
from cli.progress_bar import make_progress
from correlation.errors import RejectedEventError
from correlation.resources.records import stream_from_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from cli.settings import Settings
    from correlation.resources.streams import Stream


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """Options of ``produce``.

    Parameters
    ----------
    file
        File with one JSON document per line; ``-`` is standard input; None sends nothing.
    topic, stream
        The topic, or the stream that names it; exactly one of them with a file.
    rate
        Events per second.
    speed
        Speed relative to the recorded times; requires the stream, whose mapping reads the times.
    key_path
        Dotted path of the field that becomes the record's key.
    closes
        Streams to close.
    """

    file: Path | None
    topic: str | None = None
    stream: str | None = None
    rate: float | None = None
    speed: float | None = None
    key_path: str | None = None
    closes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.file is None:
            self._check_without_file()
            return
        if (self.topic is None) == (self.stream is None):
            raise UsageError(
                "the target is missing or given twice; give either --topic or --stream"
            )
        if self.rate is not None and self.speed is not None:
            raise UsageError("--rate and --speed cannot be combined; remove one of them")
        if self.speed is not None and self.stream is None:
            raise UsageError(
                "--speed requires --stream: the stream defines the times of the events"
            )

    def _check_without_file(self) -> None:
        if not self.closes:
            raise UsageError("the file of events is missing; add it, or use --close-stream")
        of_file = (self.topic, self.stream, self.rate, self.speed, self.key_path)
        if any(option is not None for option in of_file):
            raise UsageError(
                "--topic, --stream, --rate, --speed and --key require a file; add a file, or "
                "remove these options"
            )


def produce_file(settings: Settings, options: ProduceOptions, console: Console) -> Delivery:
    """Send the events of a file and close the streams of the options.

    Parameters
    ----------
    settings
        Addresses of broker and service.
    options
        File, destination and rate.
    console
        Console for the progress bar.

    Raises
    ------
    CliError
        The file cannot be read, broker or service do not answer, or the options would do harm;
        in the last case nothing was sent.
    """
    streams = _find_streams(settings, {*options.closes, *filter(None, [options.stream])})
    for name in options.closes:
        _refuse_live(name, streams[name])
    delivery = Delivery(0, 0, None)
    if options.file is not None:
        topic = options.topic or streams[options.stream or ""].topic
        delivery = _send_file(settings, options, options.file, topic, streams, console)
    for name in options.closes:
        close_stream(settings, name, streams[name].topic)
    return delivery


def _send_file(
    settings: Settings,
    options: ProduceOptions,
    file: Path,
    topic: str,
    streams: dict[str, Stream],
    console: Console,
) -> Delivery:
    """Send the events of a file to a topic."""
    refuse_own(settings, topic)
    # Fails before the first event if the topic or broker is missing.
    list_partitions(settings, topic)
    sender = EventSender(settings)
    with (
        _opened(file) as (lines, size),
        make_progress(console, DownloadColumn(), TimeRemainingColumn()) as progress,
    ):
        task = progress.add_task(f"events to {topic}", total=size)
        schedule = _schedule(options, streams)
        for length in send_lines(sender, topic, lines, options.key_path, schedule):
            progress.update(task, advance=length)
        return sender.finish()


def _find_streams(settings: Settings, names: set[str]) -> dict[str, Stream]:
    """Read streams from the service."""
    streams = {}
    with ServiceClient.of(settings) as service:
        for name in sorted(names):
            with suggesting(service, {("stream", name)}):
                found = service.get(f"/v1/streams/{quote(name, safe='')}")
            streams[name] = stream_from_document(name, found["document"])
    return streams


def _refuse_live(name: str, stream: Stream) -> None:
    """Raise UsageError when a stream to be closed is live."""
    if stream.clock == "live":
        raise UsageError(
            f"--close-stream: stream {name} is live, and only recorded streams (clock: replay) can "
            "be closed; remove the option"
        )


def _schedule(options: ProduceOptions, streams: dict[str, Stream]) -> Schedule | None:
    """Return the schedule of the options; None: without delay."""
    if options.rate is not None:
        return at_rate(options.rate)
    if options.speed is not None and options.stream is not None:
        return at_recorded_times(_time_reader(streams[options.stream]), options.speed)
    return None


def _time_reader(stream: Stream) -> Callable[[bytes], int | None]:
    """Return a function that reads an event's latest time from its record, in µs."""
    # Imported here: it loads numba. The check of the topic (`refuse_own`) has loaded it, too, but a
    # stream is closed without it.
    from correlation.parsing.event_reader import compile_mapping  # noqa: PLC0415

    # Only the time is needed: tokens are not read, and the arrival time, which is unknown, is set
    # far in the future.
    map_event = compile_mapping(replace(stream, tokens=None))

    def read_time_us(value: bytes) -> int | None:
        try:
            return map_event(orjson.loads(value), value, b"", 2**60).latest
        except (ValueError, RejectedEventError):
            return None

    return read_time_us


@contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file or standard input; yield it with its size in bytes, None if unknown."""
    if str(file) == "-":
        yield sys.stdin.buffer, None
        return
    try:
        with file.open("rb") as lines:
            yield lines, file.stat().st_size
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
