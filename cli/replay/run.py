"""Replay of files: evaluate conditions over files of events (``replay``)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.progress import DownloadColumn, TimeRemainingColumn

from cli.progress_bar import make_progress
from cli.replay.chunks import read_chunks
from cli.replay.crew import Alone, Orders, Together
from cli.replay.merging import Source, merge
from cli.replay.output import lines_to
from cli.replay.report import summarise
from cli.replay.setup import read_setup
from cli.replay.slots import Slots
from cli.replay.thresholds import at_thresholds

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console
    from rich.progress import Progress

    from cli.replay.crew import Crew
    from cli.replay.options import ReplayOptions
    from cli.replay.output import Write
    from cli.replay.reading import Taken

# Alarms are records of about 500 bytes each; pairs that are only counted are columns.
_MOST_ALARMS, _MOST_COUNTED = 50_000, 2_000_000


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
    begin = time.monotonic()
    named = read_setup(options)
    setup = at_thresholds(named, options.thresholds) if options.thresholds else named
    # Raises an error of a condition before any worker process starts.
    Slots(setup, (0,), alarms=False)
    orders = Orders(
        setup,
        options.files,
        options.most_record_bytes,
        alarms=not options.thresholds,
        letters=options.rejects is not None,
    )
    with ExitStack() as opened:
        progress = opened.enter_context(
            make_progress(console, DownloadColumn(), TimeRemainingColumn())
        )
        crew = opened.enter_context(_crew(orders, options.worth_processes))
        write_letters = None
        if options.rejects is not None:
            write_letters = opened.enter_context(lines_to(options.rejects))
        sources = _sources(options, orders, crew, progress, write_letters)
        for source in sources:
            source.begin()
        if options.sort:
            for source in sources:
                source.sort()
        if options.thresholds:
            for _ in merge(sources, crew, _MOST_COUNTED):
                pass
        else:
            write_alarms = opened.enter_context(lines_to(options.alarms))
            for alarms in merge(sources, crew, _MOST_ALARMS):
                write_alarms(alarms)
        totals = crew.totals()
    return summarise(named, sources, totals, options.thresholds, time.monotonic() - begin)


def _crew(orders: Orders, processes: int) -> AbstractContextManager[Crew]:
    return Alone(orders) if processes == 1 else Together(orders, processes)


def _sources(
    options: ReplayOptions,
    orders: Orders,
    crew: Crew,
    progress: Progress,
    write_letters: Write | None,
) -> list[Source]:
    sizes = [file.size for file in options.files]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    task = progress.add_task("events", total=total)

    def on_taken(taken: Taken) -> None:
        progress.update(task, advance=taken.nbytes)
        if write_letters is not None:
            write_letters(taken.letters)

    ahead = 1 if crew.hands == 1 else -(-2 * crew.hands // len(options.files))
    streams = orders.setup.streams
    return [
        Source(
            file,
            streams[file.stream],
            read_chunks(
                file,
                streams[file.stream],
                options.most_record_bytes,
                whole_rows=orders.letters,
            ),
            partial(crew.read, number),
            ahead,
            on_taken,
        )
        for number, file in enumerate(options.files)
    ]
