"""Replay of topics: the job reads all present records of the topics and ends (``replay``).

The job is the same as the live job. It has a temporary installation and only reads the topics of
the streams. Each stream is closed at the end offsets at the start of the replay; later records are
skipped.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import orjson
from rich.progress import MofNCompleteColumn, TimeElapsedColumn

from cli.client.committed import read_committed
from cli.client.topics import connected
from cli.progress_bar import make_progress
from cli.replay.dead_letters import DeadLetter
from cli.replay.installation import Installation
from cli.replay.options import usable_cores
from cli.replay.output import lines_to
from cli.replay.report import report_of
from cli.replay.setup import read_topic_setup
from cli.replay.slot_records import SlotRecords, check_closed
from cli.replay.slots import Slots
from cli.replay.spans import TopicsThere
from cli.replay.thresholds import at_thresholds
from cli.stack.jars import spark_jars
from cli.stack.java import find_java
from cli.stack.processes import ChildProcess
from cli.stack.stack import terminable
from kafka_client.consumers import open_consumer
from spark_jobs.driver.offsets import KafkaOffsets
from spark_jobs.driver.scratch import ScratchFolder
from spark_jobs.settings import Settings as JobSettings

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from cli.replay.options import TopicOptions
    from cli.replay.output import Write
    from cli.replay.setup import Setup
    from cli.replay.slots import Totals
    from cli.replay.spans import Spans
    from cli.settings import Settings

Document = dict[str, Any]

_POLL_SECONDS = 0.25


def run_topic_replay(settings: Settings, options: TopicOptions, console: Console) -> Document:
    """Run conditions over the present records of their streams' topics and write the alarms.

    Parameters
    ----------
    settings
        Broker address.
    options
        Options of the replay.
    console
        Console for the progress bar.

    Returns
    -------
    dict
        The report; see `cli.replay.report.report_of`.

    Raises
    ------
    CliError
        A stream or condition is not valid, a topic, Java or its archives are missing, the broker
        does not answer, or the job ended before it had read everything.
    """
    begin = time.monotonic()
    find_java()
    spark_jars()
    with connected(settings, KafkaOffsets) as offsets:
        there = TopicsThere(settings, offsets)
        named = read_topic_setup(options.resources, options.conditions, there.count_partitions)
        setup = at_thresholds(named, options.thresholds) if options.thresholds else named
        # Raises an error of a condition before the job starts.
        Slots(setup, (0,), alarms=False)
        spans = there.spans(setup)
    with ExitStack() as opened:
        opened.enter_context(terminable())
        write_alarms = None
        if not options.thresholds:
            write_alarms = opened.enter_context(lines_to(options.alarms))
        write_letters = None
        if options.rejects is not None:
            write_letters = opened.enter_context(lines_to(options.rejects))
        own = opened.enter_context(Installation(settings, console, keep=options.keep))
        own.register(setup)
        own.close_streams(spans)
        consumer = opened.enter_context(connected(own.settings, open_consumer))
        records = SlotRecords(own.settings, consumer)
        _run_job(own, setup, spans, records, console)
        check_closed(records.slots, setup.streams)
        if write_alarms is not None:
            found = read_committed(own.settings, own.topics.alarms)
            write_alarms(message.value() or b"" for message in found)
        first = _take_letters(own, write_letters)
        streams = _stream_reports(named, records, first)
        report = report_of(
            named, streams, records.totals(), options.thresholds, time.monotonic() - begin
        )
    return report | ({"prefix": own.prefix} if options.keep else {})


def _run_job(
    own: Installation, setup: Setup, spans: Spans, records: SlotRecords, console: Console
) -> None:
    """Run the job to its end, and show its progress."""
    total = sum(span.end - span.begin for found in spans.values() for span in found.values())
    with (
        ScratchFolder("replay") as scratch,
        make_progress(console, MofNCompleteColumn(), TimeElapsedColumn()) as progress,
    ):
        task = progress.add_task("events", total=total)
        job = _job(own, setup, spans, scratch.path)
        try:
            job.start()
            while job.exit_code is None:
                records.poll(_POLL_SECONDS)
                progress.update(task, completed=records.read)
            if job.exit_code:
                job.check()
        finally:
            # Its checkpoint is not used again, so the end of a batch need not be awaited.
            job.kill()
    records.read_to_end()


def _job(own: Installation, setup: Setup, spans: Spans, folder: Path) -> ChildProcess:
    """Return the job as a child process that runs ``coincide job``."""
    ends = {
        setup.streams[name].topic: {number: span.end for number, span in found.items()}
        for name, found in spans.items()
    }
    given = JobSettings()
    slots = given.slots if "slots" in given.model_fields_set else usable_cores()
    environment = {
        "COINCIDE_BOOTSTRAP": own.settings.bootstrap,
        "COINCIDE_PREFIX": own.prefix,
        "COINCIDE_CHECKPOINT": str(folder / "checkpoint"),
        "COINCIDE_SLOTS": str(slots),
        # The job is killed at the end: its temporary files are removed with the folder.
        "TMPDIR": str(folder),
        "COINCIDE_UNTIL_END": "true",
        "COINCIDE_UNTIL_OFFSETS": orjson.dumps(ends, option=orjson.OPT_NON_STR_KEYS).decode(),
    }
    command = [sys.executable, "-m", "cli.main", "job"]
    return ChildProcess("job", command, folder / "job.log", environment)


def _take_letters(own: Installation, write: Write | None) -> dict[str, dict[str, str]]:
    """Write the rejected records; return the first of each reason, by stream."""
    first: dict[str, dict[str, str]] = {}
    for message in read_committed(own.settings, own.topics.dead_letter):
        letter = DeadLetter.from_message(message)
        first.setdefault(letter.stream, {}).setdefault(letter.reason, letter.told)
        if write is not None:
            write([letter.to_line()])
    return first


def _stream_reports(
    setup: Setup, records: SlotRecords, first: dict[str, dict[str, str]]
) -> dict[str, Document]:
    totals, lost = records.totals(), records.lost()
    return {
        name: _stream_report(name, stream.topic, totals, first.get(name, {}))
        | {"lost": lost.get(stream.topic, 0)}
        for name, stream in setup.streams.items()
    }


def _stream_report(name: str, topic: str, totals: Totals, first: dict[str, str]) -> Document:
    label = ("stream", name)
    rejected = {
        dict(labels)["reason"]: count
        for (counter, labels), count in totals.items()
        if counter == "events_rejected_total" and label in labels
    }
    events = totals["events_consumed_total", (label,)]
    return {
        "topic": topic,
        "rows": events + sum(rejected.values()),
        "events": events,
        "late": totals["events_late_total", (label,)],
        "rejected": dict(sorted(rejected.items())),
        "first_rejected": dict(sorted(first.items())),
    }
