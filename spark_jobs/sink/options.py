"""Options of the sink, which the driver passes to its tasks.

Spark also imports this module in processes that do not write, so its imports are few.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

import orjson

if TYPE_CHECKING:
    from spark_jobs.settings import Properties


class Owner(NamedTuple):
    """A claim of the installation.

    Parameters
    ----------
    number : int
        Number of the claim; a later claim has a larger number.
    checkpoint : str
        Id of the job's checkpoint.
    start : str
        Unique id of the job's start.
    partitions : int
        Max number of partitions of the sink, over this claim and all earlier claims.
    """

    number: int
    checkpoint: str
    start: str
    partitions: int

    def replaced(self) -> Self:
        """Return the next claim of the same job."""
        return self._replace(number=self.number + 1, start=uuid.uuid4().hex)

    def to_json(self) -> str:
        """Return the token: all fields except the number."""
        fields = self._asdict()
        del fields["number"]
        return orjson.dumps(fields).decode()

    @classmethod
    def from_json(cls, number: int, token: str) -> Self:
        """Parse a token."""
        found = orjson.loads(token)
        return cls(number, found["checkpoint"], found["start"], found["partitions"])


class SinkOptions(NamedTuple):
    """Installation, connection and claim of the sink.

    Parameters
    ----------
    prefix : str
        Prefix of the installation, of its topics and of every transactional id.
    properties : mapping
        librdkafka properties.
    owner : Owner
        Claim of the job.
    marks : mapping of str to int
        See `spark_jobs.sink.marker.read_marks`.
    ahead : str or None
        Set in the first run of a query that is rebuilt: slots may lack shares of its first batch.
        If they began a batch ahead of the others, it is the id of the former query, with whose
        shares the first merge is done; otherwise, or without these shares, it is empty.
    """

    prefix: str
    properties: Properties
    owner: Owner
    marks: Mapping[str, int]
    ahead: str | None = None

    def to_strings(self) -> dict[str, str]:
        """Return the options as Spark passes them to a data source."""
        return {
            "prefix": self.prefix,
            "properties": orjson.dumps(dict(self.properties)).decode(),
            "owner": orjson.dumps(list(self.owner)).decode(),
            "marks": orjson.dumps(dict(self.marks)).decode(),
            "ahead": orjson.dumps(self.ahead).decode(),
        }

    @classmethod
    def from_strings(cls, given: Mapping[str, str]) -> Self:
        """Read the output of `to_strings`."""
        return cls(
            given["prefix"],
            orjson.loads(given["properties"]),
            Owner(*orjson.loads(given["owner"])),
            orjson.loads(given["marks"]),
            orjson.loads(given["ahead"]),
        )
