"""Results of a replay: alarms in order, and the newest record of each list."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import orjson

from correlation.kinds import CHANNELS
from correlation.resources.topics import ALARMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from correlation.operators import Evaluation, Result

Labels = tuple[tuple[str, str], ...]
Totals = Counter[tuple[str, Labels]]
_LIST_CHANNELS = frozenset(it.name for it in CHANNELS if it.compacted)


class Alarm(NamedTuple):
    """An alarm or a change; sorted by time, then alarms by condition and id, changes by number.

    Parameters
    ----------
    detected_at_us
        Time at which both events have certainly happened: the max of their latest times.
    order
        Value of an alarm, which begins with the name of the condition; of changes, the value of the
        first change of their result.
    number
        Number of the change in its result: changes of equal times build on each other. Alarms: 0.
    value
        Value of the record.
    """

    detected_at_us: int
    order: bytes
    number: int
    value: bytes


class Output:
    """Reads results.

    Parameters
    ----------
    alarms
        Whether alarms are returned, or only their number.

    Attributes
    ----------
    lists : dict
        Newest record of each list, by Kafka key.
    totals : Counter
        Counters of the merged results.
    """

    def __init__(self, *, alarms: bool) -> None:
        self._alarms = alarms
        self.lists: dict[bytes, bytes] = {}
        self.totals: Totals = Counter()

    def take(self, results: Iterable[Result]) -> tuple[int, list[Alarm]]:
        """Return the number of pairs of the results, and the alarms if requested."""
        pairs = 0
        alarms: list[Alarm] = []
        for result in results:
            if result.heading(0).channel in _LIST_CHANNELS:
                self._note_lists(result)
                continue
            pairs += len(result.ready_us())
            if self._alarms:
                alarms += _read_alarms(result)
        return pairs, alarms

    def count(self, condition: str, evaluation: Evaluation) -> None:
        """Count the merged results of a condition."""
        self.totals["alarms_total", (("condition", condition),)] += evaluation.alarms
        for name, labels, increase in evaluation.counts:
            self.totals[name, tuple(sorted(labels.items()))] += increase

    def _note_lists(self, result: Result) -> None:
        for record in result.records(result.ready_us(), orjson.dumps):
            self.lists.pop(record.key, None)
            if record.value is not None:
                self.lists[record.key] = record.value


def _read_alarms(result: Result) -> Iterator[Alarm]:
    """Yield the records of a result."""
    ready_us = result.ready_us()
    ordered = result.heading(0).channel != ALARMS.name
    first: bytes | None = None
    records = result.records(ready_us, orjson.dumps)
    rows = zip(ready_us.tolist(), records, strict=True)
    for number, (moment, record) in enumerate(rows):
        if record.value is None:
            continue
        if not ordered:
            yield Alarm(moment, record.value, 0, record.value)
            continue
        first = first or record.value
        yield Alarm(moment, first, number, record.value)
