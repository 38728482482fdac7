"""Records of the slots' state in Kafka, from which a job continues without a checkpoint.

A slot writes its position in the transaction of each batch's output, so the record says what was
written whatever happens to the checkpoint. Its conditions and totals have a record of their own,
which a slot with many conditions writes less often. Keys contain the generation: the number of
slots can change, and the records of the former slots remain until all new slots have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import orjson

from correlation.engine.published import Published
from correlation.errors import UnknownRecordVersionError
from spark_jobs.errors import RebuildError
from spark_jobs.worker.envelope import Record
from spark_jobs.worker.positions import Positions, from_json, to_json

_VERSION = 1
_TOTALS = "totals"


class SlotRecord(NamedTuple):
    """State of a slot in Kafka.

    Parameters
    ----------
    checkpoint : str
        Id of the checkpoint of the job that wrote it.
    slots : int
        Number of slots of the generation.
    config_topic_id : str or None
        Kafka's id of the config topic.
    positions : Positions
        Positions of the slot in all topics.
    published : Published
        State of its program.
    """

    checkpoint: str
    slots: int
    config_topic_id: str | None
    positions: Positions
    published: Published

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a JSON-able dict."""
        return {**self._position(), _TOTALS: self.published.totals}

    def _position(self) -> dict[str, Any]:
        return {
            "v": _VERSION,
            "checkpoint": self.checkpoint,
            "slots": self.slots,
            "config_topic_id": self.config_topic_id,
            "positions": to_json(self.positions),
            "program": self.published.position,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any] | None) -> Self | None:
        """Read the output of `to_json`; None is a slot that has not written yet.

        Raises
        ------
        UnknownRecordVersionError
            Another version of this software wrote the record.
        """
        if found is None:
            return None
        if found["v"] != _VERSION:
            raise UnknownRecordVersionError(
                f"the records of the slots have version {found['v']!r}; this software reads "
                f"{_VERSION}; use the software that wrote them"
            )
        return cls(
            found["checkpoint"],
            found["slots"],
            found["config_topic_id"],
            from_json(found["positions"]),
            Published(found["program"], found[_TOTALS]),
        )

    def to_records(
        self, topic: str, generation: int, slot: int, *, with_totals: bool
    ) -> Iterator[Record]:
        """Return the records of a slot.

        Parameters
        ----------
        topic : str
            Topic of the slots.
        generation, slot : int
            Parts of the key.
        with_totals : bool
            Whether conditions and totals are written, too.
        """
        key = f"{generation}/{slot}"
        yield Record(topic, key.encode(), orjson.dumps(self._position()))
        if with_totals:
            value = orjson.dumps({"v": _VERSION, **self.published.totals})
            yield Record(topic, f"{key}/{_TOTALS}".encode(), value)


class Generation(NamedTuple):
    """Records of the slots of a generation.

    Parameters
    ----------
    number : int
        Number of the generation.
    slots : int
        Number of slots.
    records : dict of int to SlotRecord
        State by slot; slots that have not written are missing.
    """

    number: int
    slots: int
    records: dict[int, SlotRecord]

    @property
    def is_complete(self) -> bool:
        """Whether all slots have written."""
        return len(self.records) == self.slots

    @property
    def is_level(self) -> bool:
        """Whether all slots have written, and the same batch last."""
        found = [it.positions for it in self.records.values()]
        return self.is_complete and all(it == found[0] for it in found)


def generation_of(key: bytes) -> int | None:
    """Return the generation of a record of the state topic; None of a mark of the sink."""
    generation, slash, _ = key.partition(b"/")
    return int(generation) if slash else None


def read_generations(values: Mapping[bytes, bytes]) -> list[Generation]:
    """Return the generations in the topic, newest first.

    Parameters
    ----------
    values : mapping of bytes to bytes
        Newest value of each key.

    Raises
    ------
    RebuildError
        When a record exceeded the size limit of the topic.
    UnknownRecordVersionError
        When another version of this software wrote a record.
    """
    found: dict[int, dict[int, SlotRecord]] = {}
    for key, value in values.items():
        generation, _, slot = key.decode().partition("/")
        totals = values.get(key + f"/{_TOTALS}".encode())
        if not slot.isdecimal() or totals is None:
            continue
        position, found_totals = orjson.loads(value), orjson.loads(totals)
        if "error" in {**position, **found_totals}:
            raise RebuildError(
                f"the state of slot {key.decode()} is not in Kafka: it exceeded max.message.bytes "
                "of its topic. Restore the checkpoint, or start once with --from-beginning"
            )
        # The version of the totals is that of the position.
        del found_totals["v"]
        record = SlotRecord.from_json({**position, _TOTALS: found_totals})
        if record is not None:
            found.setdefault(int(generation), {})[int(slot)] = record
    return [
        Generation(number, next(iter(records.values())).slots, records)
        for number, records in sorted(found.items(), reverse=True)
    ]
