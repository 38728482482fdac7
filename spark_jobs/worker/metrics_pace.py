"""Decide in which batches a slot writes its record to the metrics topic.

The record has the totals of all conditions. A small record is written in each batch. With a
thousand conditions it has over 1 MB, and writing it in each batch would cost more than the batch
itself: a slot then writes about `_BYTES_PER_SECOND`, and pauses for at most `MAX_PAUSE_US`. The
totals are part of the slot's state, so a later record contains all that was left out.
"""

from __future__ import annotations

# Size of the records that are written in each batch: about 20 conditions with alarms.
_SMALL_BYTES = 32_768
# A record of 500 KB is written every 5 seconds.
_BYTES_PER_SECOND = 100_000
MAX_PAUSE_US = 10_000_000


class MetricsPace:
    """Pace of one slot's records for the metrics topic.

    Parameters
    ----------
    config_offset : int, optional
        Config offset of the newest record.
    written_us, due_us : int
        Time of the newest record, and time from which on the next one is due, in µs since 1970.
    """

    __slots__ = ("_config_offset", "_due_us", "_written_us")

    def __init__(
        self, config_offset: int | None = None, written_us: int = 0, due_us: int = 0
    ) -> None:
        self._config_offset = config_offset
        self._written_us, self._due_us = written_us, due_us

    def dump(self) -> list[int | None]:
        """Return the parameters, for the worker that serves the slot next."""
        return [self._config_offset, self._written_us, self._due_us]

    def is_due(self, config_offset: int, now_us: int) -> bool:
        """Return whether a batch must write the record.

        Parameters
        ----------
        config_offset : int
            Offset of the last config record that the slot has applied. Users wait for it after a
            registration, so a change is written at once.
        now_us : int
            Wall time in µs since 1970; the record is also due when the clock was set back.
        """
        changed = config_offset != self._config_offset
        return changed or now_us >= self._due_us or now_us < self._written_us

    def note_written(self, config_offset: int, now_us: int, size: int) -> None:
        """Set the time of the next record after a record of `size` bytes."""
        self._config_offset = config_offset
        self._written_us = now_us
        pause_us = 0 if size <= _SMALL_BYTES else size * 1_000_000 // _BYTES_PER_SECOND
        self._due_us = now_us + min(pause_us, MAX_PAUSE_US)
