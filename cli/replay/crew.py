"""Workers of a replay: this process alone, or several worker processes.

Every process parses chunks of any file or partition, and owns some of the slots. Chunks are
returned as events, and blocks are sent to all slots; both in the order of the requests.
"""

from __future__ import annotations

import signal
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import cycle
from multiprocessing import get_context, resource_tracker
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from cli.errors import ProcessError
from cli.replay.reading import InputReader, Taken
from cli.replay.results import Totals
from cli.replay.slots import SLOTS, Found, Slots, Step
from cli.stack.leash import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar, TypeVarTuple, Unpack

    from cli.replay.chunks import Chunk
    from cli.replay.options import Input
    from cli.replay.setup import Setup

    _Given = TypeVarTuple("_Given")
    _Result = TypeVar("_Result")


class Orders(NamedTuple):
    """Parameters of the workers.

    Parameters
    ----------
    setup
        Streams and conditions.
    inputs
        Files or partitions of events.
    max_record_bytes
        Max length of a row or record; longer ones are rejected.
    alarms, letters
        Whether alarms and rejected rows are returned as records.
    """

    setup: Setup
    inputs: tuple[Input, ...]
    max_record_bytes: int
    alarms: bool
    letters: bool


class Crew(Protocol):
    """Workers of a replay; a context manager that ends them at its exit."""

    # Number of chunks that are parsed concurrently.
    hands: int

    def read(self, source: int, chunk: Chunk) -> Future[Taken]:
        """Submit a chunk of an input for parsing."""

    def advance(self, step: Step) -> Iterator[Found]:
        """Evaluate a block in all slots."""

    def totals(self) -> Totals:
        """Return the counters, summed over all slots."""

    def lists(self) -> dict[bytes, bytes]:
        """Return the newest records of the lists of all slots, by Kafka key."""


class _Worker:
    """State of one process: readers of the inputs, and some slots."""

    def __init__(self, orders: Orders, number: int, count: int) -> None:
        self._readers = [
            InputReader(
                source,
                orders.setup.streams[source.stream],
                orders.max_record_bytes,
                letters=orders.letters,
            )
            for source in orders.inputs
        ]
        self.slots = Slots(orders.setup, range(number, SLOTS, count), alarms=orders.alarms)

    def read(self, source: int, chunk: Chunk) -> Taken:
        """Parse a chunk of an input."""
        return self._readers[source].read(chunk)


class Alone:
    """A single worker in this process, which runs each request at once."""

    hands = 1

    def __init__(self, orders: Orders) -> None:
        self._worker = _Worker(orders, 0, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, source: int, chunk: Chunk) -> Future[Taken]:
        """See `Crew.read`."""
        done: Future[Taken] = Future()
        done.set_result(self._worker.read(source, chunk))
        return done

    def advance(self, step: Step) -> Iterator[Found]:
        """See `Crew.advance`."""
        yield self._worker.slots.advance(step)

    def totals(self) -> Totals:
        """See `Crew.totals`."""
        return self._worker.slots.totals()

    def lists(self) -> dict[bytes, bytes]:
        """See `Crew.lists`."""
        return self._worker.slots.lists()


class Together:
    """Worker processes, each with its own queue and a fixed set of slots.

    Parameters
    ----------
    orders
        Parameters of the workers.
    count
        Number of processes.
    """

    def __init__(self, orders: Orders, count: int) -> None:
        self.hands = count
        # Not forked: this process may have threads of numba or Arrow.
        context = get_context("spawn")
        self._processes = [
            ProcessPoolExecutor(1, context, _begin, (orders, number, count))
            for number in range(count)
        ]
        self._next = cycle(self._processes)

    def __enter__(self) -> Self:
        with _uninterrupted():
            for process in self._processes:
                _submit(process, _totals)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.shutdown(cancel_futures=True)

    def read(self, source: int, chunk: Chunk) -> Future[Taken]:
        """See `Crew.read`."""
        return _submit(next(self._next), _read, source, chunk)

    def advance(self, step: Step) -> Iterator[Found]:
        """See `Crew.advance`."""
        count = self.hands
        asked = []
        for number, process in enumerate(self._processes):
            mine = {slot: it for slot, it in step.events.items() if slot % count == number}
            part = Step(mine, step.progress, step.heartbeats)
            asked.append(_submit(process, _advance, part))
        return map(result_of, asked)

    def totals(self) -> Totals:
        """See `Crew.totals`."""
        asked = [_submit(process, _totals) for process in self._processes]
        totals: Totals = Counter()
        for it in asked:
            found: Totals = result_of(it)
            totals += found
        return totals

    def lists(self) -> dict[bytes, bytes]:
        """See `Crew.lists`."""
        asked = [_submit(process, _lists) for process in self._processes]
        return {key: value for it in asked for key, value in result_of(it).items()}


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Postpone Ctrl-C to the end of the block; processes that are started in it never receive it.

    Ctrl-C reaches every process of the terminal. If it ended a worker during its imports, this
    process would wait for the worker forever.
    """
    interrupts: list[int] = []
    # The tracker is started first, because its start unblocks the signal.
    resource_tracker.ensure_running()
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        raise KeyboardInterrupt


def result_of(asked: Future[_Result]) -> _Result:
    """Wait for the result of a request.

    Raises
    ------
    ProcessError
        The process that ran the request has ended.
    """
    try:
        return asked.result()
    except BrokenProcessPool as error:
        raise _lost() from error


def _submit(
    process: ProcessPoolExecutor,
    function: Callable[[Unpack[_Given]], _Result],
    *arguments: *_Given,
) -> Future[_Result]:
    try:
        return process.submit(function, *arguments)
    except BrokenProcessPool as error:
        raise _lost() from error


def _lost() -> ProcessError:
    return ProcessError(
        "a process of the replay ended before its work was done; check the free memory, or use "
        "less of it with --processes 1"
    )


# The worker of a worker process; set once when the process starts.
_workers: list[_Worker] = []


def _begin(orders: Orders, number: int, count: int) -> None:
    """Initialise a worker process."""
    die_with_parent()
    _workers.append(_Worker(orders, number, count))


def _read(source: int, chunk: Chunk) -> Taken:
    return _workers[0].read(source, chunk)


def _advance(step: Step) -> Found:
    return _workers[0].slots.advance(step)


def _lists() -> dict[bytes, bytes]:
    return _workers[0].slots.lists()


def _totals() -> Totals:
    return _workers[0].slots.totals()
