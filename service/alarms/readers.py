"""Readers of live feeds: each has a position in the common memory, and no queue of its own.

If a reader is so slow that the memory drops records before it has taken them, it is sent the event
`dropped`, or is disconnected if its connection takes no more bytes. Readers run in the event loop,
without threads, and take few records at a time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson
from fastapi.sse import format_sse_event

from service.alarms.positions import write_id
from service.alarms.records import Selection
from service.errors import NotReadyError, TooManyReadersError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from service.alarms.memory import Positions, RecentRecords
    from service.alarms.records import Place, ResultRecord

_LOGGER = logging.getLogger(__name__)
KEEP_ALIVE_SECONDS = 15.0
# Time after which a client connects again when the connection was lost.
_RETRY_MS = 3000
# Max number and size of the records that a reader takes at once.
_AT_ONCE = 64
_AT_ONCE_BYTES = 262_144
# Events of this module; the events of records have their CloudEvents types.
GAP, DROPPED = "gap", "dropped"


class Reader:
    """A live feed of selected records.

    Parameters
    ----------
    memory : RecentRecords
        Source of the records.
    show : callable
        `(record) -> line of JSON` of a selected record; None: it is not selected.
    key : bytes
        Key of the installation, for ids.
    begin : (int, dict)
        Number of the last record before the stream, and the position of the stream.
    missed : list of str or None
        Topics of which records were missed before the stream; None: nothing was missed.
    """

    def __init__(
        self,
        memory: RecentRecords,
        show: Callable[[ResultRecord], bytes | None],
        key: bytes,
        begin: tuple[int, Positions],
        missed: Sequence[str] | None = None,
    ) -> None:
        self._memory = memory
        self._show = show
        self._key = key
        self._number, self._positions = begin
        self._missed = missed
        # Partitions of the position that are not followed any more.
        self._gone: set[Place] = set()
        self._woken = asyncio.Event()
        self._is_idle = False
        self._is_stopped = False
        # Number of batches taken, and the number at which the reader was found to be slow.
        self._steps = 0
        self._slow_at: int | None = None
        self.is_dropped = False
        # Ends the sending of the response, even while the connection takes no bytes.
        self.cancel: Callable[[], None] = _do_nothing

    async def events(self, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> AsyncIterator[bytes]:
        """Yield the events until the service stops or the reader is dropped.

        Parameters
        ----------
        keep_alive_seconds : float
            Max time without a byte.
        """
        yield format_sse_event(retry=_RETRY_MS, id=self._id())
        if self._missed is not None:
            problem = "records after this position are not in memory any more"
            yield self._notice(GAP, problem, self._missed)
        while not self._is_stopped:
            self._woken.clear()
            number = self._number
            found = self._memory.after(number, self._positions, _AT_ONCE, _AT_ONCE_BYTES)
            if found.missed:
                self.is_dropped = True
                yield self._notice(DROPPED, "the reader is too slow", found.missed)
                return
            self._number, self._gone = found.number, found.gone
            self._steps += 1
            events = b"".join(map(self._take, found.records))
            if events:
                yield events
            elif found.number == number:
                if await self._wait(keep_alive_seconds):
                    # The id moves on, even if no record is selected.
                    yield format_sse_event(comment="keep-alive", id=self._id())
            else:
                # Other readers and requests have their turn.
                await asyncio.sleep(0)

    def wake(self) -> None:
        """Continue after new records; a reader whose connection takes no bytes is dropped."""
        self._woken.set()
        if self._is_idle or not self._memory.missed(self._positions):
            return
        # Not cancelled at first sight: a reader that still takes bytes is sent the event.
        if self._slow_at == self._steps:
            self.is_dropped = True
            self.cancel()
        self._slow_at = self._steps

    def stop(self) -> None:
        """End the stream."""
        self._is_stopped = True
        self._woken.set()
        if not self._is_idle:
            self.cancel()

    async def _wait(self, seconds: float) -> bool:
        """Wait for records; return whether the time is over."""
        self._is_idle = True
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return True
        finally:
            self._is_idle = False
        return False

    def _take(self, record: ResultRecord) -> bytes:
        """Move past a record; return its event, or nothing if it is not selected."""
        offset = record.age.offset
        # A resumed reader passes the records in memory that it has seen before.
        if offset < self._positions.get(record.place, 0):
            return b""
        self._positions[record.place] = offset + 1
        line = self._show(record)
        if line is None:
            return b""
        kind = None if record.type in {GAP, DROPPED} else record.type
        return format_sse_event(event=kind, data_str=line.decode(), id=self._id())

    def _notice(self, event: str, problem: str, topics: Sequence[str]) -> bytes:
        data = orjson.dumps({"problem": problem, "topics": list(topics)}).decode()
        return format_sse_event(event=event, data_str=data, id=self._id())

    def _id(self) -> str:
        followed = {it: next_ for it, next_ in self._positions.items() if it not in self._gone}
        return write_id(followed, self._key)


class Readers:
    """The open readers, of limited number.

    Parameters
    ----------
    most : int
        Max number of readers.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        # Event loop and caller of each reader.
        self._open: dict[Reader, tuple[asyncio.AbstractEventLoop, str | None]] = {}
        self._is_waking = False
        self._is_closed = False
        self.dropped_total = 0
        # Readers with the same filter share the parsing of new records.
        self.show = lru_cache(maxsize=_AT_ONCE)(Selection.show)

    def __len__(self) -> int:
        return len(self._open)

    def add(
        self, reader: Reader, loop: asyncio.AbstractEventLoop, caller: str | None = None
    ) -> None:
        """Add a reader whose stream runs in an event loop.

        Parameters
        ----------
        reader : Reader
            The reader.
        loop : AbstractEventLoop
            Its event loop.
        caller : str or None
            Caller of the stream, who may have half of all streams; None: callers are not known.

        Raises
        ------
        TooManyReadersError, NotReadyError
            As `check_room`.
        """
        with self._lock:
            self._check_room(caller)
            self._open[reader] = loop, caller

    def check_room(self, caller: str | None) -> None:
        """Check that a caller may open another stream.

        Raises
        ------
        TooManyReadersError
            When the max number of readers is open, or the caller has too many.
        NotReadyError
            When the service stops.
        """
        with self._lock:
            self._check_room(caller)

    def _check_room(self, caller: str | None) -> None:
        if self._is_closed:
            raise NotReadyError("the service stops")
        remedy = "close one, or raise COINCIDE_ALARM_READERS"
        if len(self._open) >= self._most:
            raise TooManyReadersError(f"{self._most} live feeds are open; {remedy}")
        own = sum(it == caller for _, it in self._open.values())
        if caller is not None and own >= max(1, self._most // 2):
            raise TooManyReadersError(f"{own} live feeds of {caller} are open; {remedy}")

    def remove(self, reader: Reader) -> None:
        """Remove a reader whose stream has ended."""
        with self._lock:
            self._open.pop(reader, None)
            self.dropped_total += reader.is_dropped
        if reader.is_dropped:
            _LOGGER.warning("a reader of alarms was too slow and is disconnected")

    def wake(self) -> None:
        """Wake all readers from any thread; calls before they run count as one."""
        with self._lock:
            found = next(iter(self._open.values()), None)
            if found is None or self._is_waking:
                return
            self._is_waking = True
            found[0].call_soon_threadsafe(self._wake_all)

    def close(self) -> None:
        """End all streams, in the event loop; further readers are refused."""
        with self._lock:
            self._is_closed = True
            found = list(self._open)
        for reader in found:
            reader.stop()

    def _wake_all(self) -> None:
        with self._lock:
            self._is_waking = False
            found = list(self._open)
        for reader in found:
            reader.wake()


def _do_nothing() -> None:
    """No-op callback."""
