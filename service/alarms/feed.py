"""Recent results and live feeds of them: topics, memory and readers together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from service.alarms.following import Follower
from service.alarms.memory import RecentRecords
from service.alarms.positions import invalid_position, read_id, write_id
from service.alarms.readers import Reader, Readers
from service.errors import AlarmNotFoundError, BrokerError, NoAlarmsError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.alarms.memory import Positions
    from service.alarms.records import Age, ResultRecord, Selection
    from service.settings import Settings

# Max size of a page in bytes, unless its only record is larger.
_PAGE_BYTES = 4 * 2**20


class Page(NamedTuple):
    """Results as lines of JSON, the newest first.

    Attributes
    ----------
    lines : list of bytes
        The results.
    last : Age or None
        Age of the last result, if older ones follow.
    position : str or None
        Id that continues after the newest record; None: the topics are not known yet.
    reading : dict
        Problem of each followed topic; None: no problem.
    """

    lines: list[bytes]
    last: Age | None
    position: str | None
    reading: dict[str, str | None]


class AlarmFeed:
    """The results of conditions, recent and live.

    Parameters
    ----------
    settings : Settings
        Broker address, topics and bounds.
    output_topics : callable
        Returns the output topics of the registered conditions.
    """

    def __init__(self, settings: Settings, output_topics: Callable[[], frozenset[str]]) -> None:
        self._is_on = settings.recent_alarms > 0
        self._memory = RecentRecords(settings.recent_alarms, settings.recent_alarms_bytes)
        self.readers = Readers(settings.alarm_readers)
        own = settings.topics
        channels = {own.of(it) for it in own.channels if not it.compacted}
        self._follower = Follower(
            settings,
            lambda: output_topics() | channels | {own.alarms},
            self._memory,
            self.readers.wake,
        )

    @property
    def followed_total(self) -> int:
        """Number of results read since the start."""
        return self._memory.followed_total

    def start(self) -> None:
        """Start reading, unless the setting is 0."""
        if self._is_on:
            self._follower.start()

    def stop(self) -> None:
        """Stop reading and close the Kafka clients."""
        self._follower.stop()

    def page(self, selection: Selection, limit: int, before: Age | None) -> Page:
        """Return recent results, the newest first.

        Parameters
        ----------
        selection : Selection
            Filter.
        limit : int
            Max number of results.
        before : Age or None
            Only results that are older; None: all.

        Raises
        ------
        NoAlarmsError
            When the service does not read alarms.
        """
        self._check_is_on()
        records, positions = self._memory.newest()
        lines: list[bytes] = []
        last, nbytes = None, 0
        for record in records:
            if before is not None and record.age >= before:
                continue
            line = selection.show(record)
            if line is None:
                continue
            nbytes += len(line)
            if lines and (len(lines) == limit or nbytes > _PAGE_BYTES):
                break
            lines.append(line)
            last = record.age
        else:
            last = None
        key = self._follower.key
        position = None if key is None else write_id(positions, key)
        return Page(lines, last, position, self._follower.state.problems())

    def find(self, topic: str, partition: int, offset: int) -> ResultRecord:
        """Return a recent result.

        Raises
        ------
        AlarmNotFoundError
            When it is not in memory.
        NotReadyError
            When the topics are not known yet.
        NoAlarmsError
            When the service does not read alarms.
        """
        self._check_is_on()
        self._key()
        found = self._memory.find(topic, partition, offset)
        if found is None:
            raise AlarmNotFoundError(
                f"topic {topic}, partition {partition}, offset {offset} is not in the memory of "
                "the service; Kafka may still have the record"
            )
        return found

    def open(self, selection: Selection, last_id: str | None) -> Reader:
        """Return a reader of new results, which is not yet counted.

        Parameters
        ----------
        selection : Selection
            Filter. With `since_us` and without `last_id`, recent results are read first.
        last_id : str or None
            Id of the last event that the client has; the reader continues after it.

        Raises
        ------
        InvalidPositionError
            When the id is not valid.
        NoAlarmsError
            When the service does not read alarms.
        NotReadyError, BrokerError
            When the topics are not known yet, or the broker does not answer.
        """
        self._check_is_on()
        key = self._key()
        show = partial(self.readers.show, selection)
        if last_id is not None:
            positions, missed = self._continue_after(read_id(last_id, key))
            return Reader(self._memory, show, key, (0, positions), missed)
        if selection.since_us is not None:
            return Reader(self._memory, show, key, (0, self._memory.oldest()))
        return Reader(self._memory, show, key, self._memory.last_number())

    def _continue_after(self, positions: Positions) -> tuple[Positions, list[str] | None]:
        """Return where to continue; a position beyond the end of a partition is not valid."""
        found, missed = self._memory.begin_after(positions)
        known = self._memory.positions()
        # Another instance of the service may have read further than this one.
        for place, offset in found.items():
            if offset > known.get(place, 0):
                try:
                    is_valid = self._follower.is_within(place, offset)
                except KafkaException as error:
                    raise BrokerError(
                        f"the position cannot be checked: {error.args[0].str()}"
                    ) from error
                if not is_valid:
                    raise invalid_position()
        return found, missed

    def _key(self) -> bytes:
        """Return the key of positions; known when the topics are."""
        if self._follower.key is None:
            raise NotReadyError("the topics of alarms are not known yet: Kafka does not answer")
        return self._follower.key

    def _check_is_on(self) -> None:
        if not self._is_on:
            raise NoAlarmsError(
                "the service does not read alarms: COINCIDE_RECENT_ALARMS is 0; set it to the "
                "number of alarms to keep"
            )
