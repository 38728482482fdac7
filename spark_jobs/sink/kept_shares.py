"""Shares of slots in the state topic, where they are kept until the next shares of their slots.

A task writes the shares of its slots in the transaction of its output. The job may be killed before
the driver has merged them. With its checkpoint, Spark repeats the batch. Without it, the next job
finds the shares here (`spark_jobs.sink.merged`). They are removed when its query has reached the
positions of all slots.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
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
    ahead : str
        See `SinkOptions`; empty if the query has no value. Only the first batch has such shares.
    is_whole : bool
        Whether all records that were written have shares of this version of the software. A record
        that exceeded max.message.bytes has none.
    """

    query: str
    batch: int
    blobs: Sequence[bytes]
    ahead: str = ""
    is_whole: bool = True

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
            "ahead": self.ahead,
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
            None if no record exists.
        """
        found = [
            it
            for it in _records(values)
            if it["checkpoint"] in checkpoints and it["query"] != present
        ]
        if not found:
            return None
        # The clocks of two hosts may differ.
        followed = {it.get("ahead") for it in found}
        last = max(found, key=lambda it: (it["query"] not in followed, it["at"]))
        return cls.of_query(values, last["query"])

    @classmethod
    def of_query(cls, values: Mapping[bytes, bytes], query: str) -> Self | None:
        """Return the shares of the last batch of a query; see `newest`."""
        found = [it for it in _records(values) if it["query"] == query]
        if not found:
            return None
        last = max(it["next_batch"] for it in found)
        mine = [it for it in found if it["next_batch"] == last]
        known = [it for it in mine if it["format"] == _VERSION and "shares" in it]
        blobs = [b64decode(blob) for it in known for blob in it["shares"]]
        ahead = next((it["ahead"] for it in known), "")
        return cls(query, last - 1, blobs, ahead, len(known) == len(mine))

    def chain(self, values: Mapping[bytes, bytes]) -> list[Self]:
        """Return these shares after those of the former queries that belong to the same merge."""
        found = [self]
        while found[0].ahead and not found[0].batch:
            before = self.of_query(values, found[0].ahead)
            if before is None or before.query in {it.query for it in found}:
                break
            found.insert(0, before)
        return found


def _records(values: Mapping[bytes, bytes]) -> list[dict[str, Any]]:
    """Return the records of the tasks."""
    return [orjson.loads(it) for key, it in values.items() if key.endswith(_KEY.encode())]


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
