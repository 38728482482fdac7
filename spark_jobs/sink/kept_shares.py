"""Shares of slots in the state topic, where they are kept until the next shares of their slots.

A task writes the shares of its slots in the transaction of its output. The job may be killed before
the driver has merged them. With its checkpoint, Spark repeats the batch. Without it, the next job
finds the shares here (`spark_jobs.sink.merged`). They are removed when its query has reached the
positions of all slots.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import orjson

from spark_jobs.sink.marker import mark_of
from spark_jobs.worker.envelope import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from spark_jobs.sink.transactions import Target

# Version of the shares (`SlotShares`); those of other versions are left out.
_VERSION = 2
_KEY = ".shares"


class KeptShares(NamedTuple):
    """Shares of the slots in a batch.

    Parameters
    ----------
    query : str
        Id of the query.
    batch : int
        Number of the batch.
    blobs : sequence of bytes
        The shares of the slots that have written the batch (`SlotShares`).
    """

    query: str
    batch: int
    blobs: Sequence[bytes]

    def to_record(self, target: Target) -> Record:
        """Return the record of a task, which is a mark of the batch, too.

        Parameters
        ----------
        target : Target
            Place of the task's part of the sink.
        """
        value = {
            **mark_of(target.group, self.batch),
            "query": self.query,
            "checkpoint": target.owner.checkpoint,
            "at": time.time_ns() // 1_000,
            "format": _VERSION,
            "shares": [b64encode(it).decode() for it in self.blobs],
        }
        key = f"{target.group}{_KEY}".encode()
        return Record(target.topics.state, key, orjson.dumps(value))

    @classmethod
    def newest(
        cls, values: Mapping[bytes, bytes], checkpoints: Collection[str], present: str | None
    ) -> Self | None:
        """Return the newest shares of former queries.

        Parameters
        ----------
        values : mapping of bytes to bytes
            Newest value of each key of the state topic.
        checkpoints : collection of str
            Ids of the checkpoints of the former queries.
        present : str or None
            Id of the present query.

        Returns
        -------
        KeptShares or None
            None if they are missing, or another version of this software wrote them.
        """
        found = [
            it
            for it in _records(values)
            if it["checkpoint"] in checkpoints and it["query"] != present
        ]
        if not found:
            return None
        last = max(found, key=itemgetter("at"))
        return cls.of_query(values, last["query"])

    @classmethod
    def of_query(cls, values: Mapping[bytes, bytes], query: str) -> Self | None:
        """Return the shares of the last batch of a query; see `newest`."""
        found = [it for it in _records(values) if it["query"] == query]
        if not found:
            return None
        last = max(it["next_batch"] for it in found)
        blobs = [
            b64decode(blob) for it in found if it["next_batch"] == last for blob in it["shares"]
        ]
        return cls(query, last - 1, blobs)

    def groups(self, values: Mapping[bytes, bytes]) -> set[str]:
        """Return the groups of the marks of the parts of the sink that have kept these shares."""
        place = self.query, self.batch + 1
        found = _records(values)
        return {it["group"] for it in found if (it["query"], it["next_batch"]) == place}


def _records(values: Mapping[bytes, bytes]) -> list[dict[str, Any]]:
    """Return the records with shares of this version of the software."""
    kept = (orjson.loads(it) for key, it in values.items() if key.endswith(_KEY.encode()))
    # A record that exceeds max.message.bytes has no shares.
    return [it for it in kept if it["format"] == _VERSION and "shares" in it]


def former_keys(values: Mapping[bytes, bytes], present: str | None) -> list[bytes]:
    """Return the keys of the shares of former queries.

    Parameters
    ----------
    values, present
        As of `KeptShares.newest`.
    """
    return [
        key
        for key, it in values.items()
        if key.endswith(_KEY.encode()) and orjson.loads(it)["query"] != present
    ]
