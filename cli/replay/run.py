"""Replay: evaluate conditions over files or partitions of events (``replay``)."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rich.progress import DownloadColumn, TimeRemainingColumn

from cli.progress_bar import make_progress
from cli.replay.chunks import read_chunks
from cli.replay.crew import Alone, Orders, Together
from cli.replay.lists import add_lists
from cli.replay.merging import Source, merge
from cli.replay.options import EventFile, EventPartition, count_processes
from cli.replay.output import lines_to
from cli.replay.report import summarise
from cli.replay.results import Output
from cli.replay.setup import read_setup
from cli.replay.slots import Slots
from cli.replay.thresholds import at_thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console
    from rich.progress import Progress

    from cli.replay.chunks import Chunk
    from cli.replay.crew import Crew
    from cli.replay.options import ReplayOptions
    from cli.replay.output import Write
    from cli.replay.reading import Taken
    from cli.replay.setup import Setup

_Input = TypeVar("_Input", EventFile, EventPartition)
# Alarms are records of about 500 bytes each; pairs that are only counted are columns.
_MAX_ALARMS, _MAX_COUNTED = 50_000, 2_000_000


def run_replay(options: ReplayOptions, console: Console) -> dict[str, Any]:
    """Run conditions over files and write their alarms.

    Parameters
    ----------
    options
        Options of the replay.
    console
        Console for the progress bar.

    Returns
    -------
    dict
        The report; see `cli.replay.report.summarise`.

    Raises
    ------
    CliError
        A file cannot be read or written, or a stream or condition is not valid.
    """
    setup = read_setup(options)

    def read(file: EventFile) -> Generator[Chunk]:
        whole_rows = options.rejects is not None
        stream = setup.streams[file.stream]
        return read_chunks(file, stream, options.max_record_bytes, whole_rows=whole_rows)

    progress = make_progress(console, DownloadColumn(), TimeRemainingColumn())
    return run_inputs(setup, options, options.files, read, progress)


def run_inputs(
    setup: Setup,
    options: ReplayOptions,
    inputs: Sequence[_Input],
    read: Callable[[_Input], Generator[Chunk]],
    progress: Progress,
) -> dict[str, Any]:
    """Run conditions over files or partitions; result and errors as of `run_replay`.

    Parameters
    ----------
    setup
        Streams and conditions.
    options
        Options of the replay.
    inputs
        Files or partitions of events.
    read
        Returns the chunks of an input.
    progress
        Progress bar.
    """
    begin = time.monotonic()
    evaluated = at_thresholds(setup, options.thresholds) if options.thresholds else setup
    # Raises an error of a condition before any worker process starts.
    Slots(evaluated, (0,), alarms=False)
    orders = Orders(
        evaluated,
        tuple(inputs),
        options.max_record_bytes,
        alarms=not options.thresholds,
        letters=options.rejects is not None,
    )
    with ExitStack() as opened:
        opened.enter_context(progress)
        crew = opened.enter_context(_crew(orders, count_processes(options.processes, inputs)))
        write_letters = None
        if options.rejects is not None:
            write_letters = opened.enter_context(lines_to(options.rejects))
        chunks = [opened.enter_context(closing(read(it))) for it in inputs]
        sources = _sources(orders, chunks, crew, progress, write_letters)
        for source in sources:
            source.begin()
        if options.sort:
            for source in sources:
                source.sort()
        merged = Output(alarms=orders.alarms)
        if options.thresholds:
            for _ in merge(sources, crew, _MAX_COUNTED, merged):
                pass
        else:
            write_alarms = opened.enter_context(lines_to(options.alarms))
            for alarms in merge(sources, crew, _MAX_ALARMS, merged):
                write_alarms(alarms)
        totals = crew.totals()
        totals.update(merged.totals)
        lists = crew.lists() | merged.lists
    report = summarise(setup, sources, totals, options.thresholds, time.monotonic() - begin)
    if not options.thresholds:
        add_lists(report, lists)
    return report


def _crew(orders: Orders, processes: int) -> AbstractContextManager[Crew]:
    return Alone(orders) if processes == 1 else Together(orders, processes)


def _sources(
    orders: Orders,
    chunks: Sequence[Generator[Chunk]],
    crew: Crew,
    progress: Progress,
    write_letters: Write | None,
) -> list[Source]:
    sizes = [it.size for it in orders.inputs]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    task = progress.add_task("events", total=total)

    def on_taken(taken: Taken) -> None:
        progress.update(task, advance=taken.size)
        if write_letters is not None:
            write_letters(taken.letters)

    ahead = 1 if crew.hands == 1 else -(-2 * crew.hands // len(orders.inputs))
    return [
        Source(
            origin,
            orders.setup.streams[origin.stream],
            chunks[number],
            partial(crew.read, number),
            ahead,
            on_taken,
        )
        for number, origin in enumerate(orders.inputs)
    ]
