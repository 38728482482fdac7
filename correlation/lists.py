"""Present lists that conditions maintain on compacted channels.

The Kafka key of a list is the name of its condition, followed by `/` and the join key if the
condition has one list per join key. Names of conditions do not contain `/`, so different lists have
different keys. The newest record of a key is the whole list; a tombstone withdraws the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from correlation.buffers.columns import Int64s
from correlation.operators import (
    Condition,
    Encode,
    Heading,
    OutputRecord,
    encode_json,
    make_heading,
    result_headers,
)
from correlation.resources.schemas import (
    NULL,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    Schema,
    constant,
    described,
    headers_of,
    list_of,
    object_of,
)
from correlation.resources.topics import OMITTED_BYTES, OMITTED_HEADER, Channel
from correlation.result_format import LIST_TYPE, LIST_VERSION, ListName, as_text

# Fields that a list above the size limit of its topic loses if they are long.
_STRINGS = ("kind", "condition", "key")


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a kind of condition.

    Parameters
    ----------
    channel : Channel
        Compacted channel of the present lists.
    columns : tuple of str
        Titles of the columns in which the console and `coincide tail --list` show a list; the first
        is that of the rank.
    cells : callable
        `(item) -> cells` of an item of a list, one for each column.
    name : callable
        `(item) -> str`: identity of an item when it moves to another rank.
    """

    channel: Channel
    columns: tuple[str, ...]
    cells: Callable[[Mapping[str, Any]], Sequence[str]]
    name: Callable[[Mapping[str, Any]], str]


class PresentList(NamedTuple):
    """A list after a block.

    Parameters
    ----------
    key : bytes or None
        Join key of the list; None if the condition has a single list.
    as_of_us : int
        Time up to which events have taken effect, in µs.
    items : sequence of dict or None
        Items as JSON-able dicts, the first place first; None withdraws the list.
    """

    key: bytes | None
    as_of_us: int
    items: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class ListUpdates:
    """The new state of some lists of a condition, as a result.

    Parameters
    ----------
    condition : Condition
        Condition that maintains the lists.
    channel : Channel
        Compacted channel of its kind.
    lists : sequence of PresentList
        Lists that changed, each once.
    """

    condition: Condition
    channel: Channel
    lists: Sequence[PresentList]

    def heading(self, detected_at_us: int) -> Heading:
        """See `Result.heading`."""
        return make_heading(self.condition, detected_at_us, LIST_TYPE, self.channel)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`: the times up to which the lists are known."""
        return np.array([it.as_of_us for it in self.lists], np.int64)

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """See `Result.records`."""
        condition = self.condition
        moments = np.broadcast_to(detected_at_us, len(self.lists)).tolist()
        for found, moment in zip(self.lists, moments, strict=True):
            name = ListName(condition.name, found.key)
            ident = f"{condition.name}/{condition.version}/{as_text(name.record_key())}@{moment}"
            if found.items is None:
                yield OutputRecord(name.record_key(), None, ident)
                continue
            key = {} if found.key is None else {"key": as_text(found.key)}
            record = {
                "v": LIST_VERSION,
                "kind": condition.kind,
                "condition": condition.name,
                "version": condition.version,
                **key,
                "as_of": found.as_of_us,
                "detected_at": moment,
                "items": list(found.items),
            }
            yield OutputRecord(name.record_key(), encode(record), ident)


def list_types(kind: str, channel: Channel, item: Schema) -> tuple[RecordType, ...]:
    """Return the types of the records of `ListUpdates`, and of a list that is too large.

    Parameters
    ----------
    kind : str
        Kind of the conditions.
    channel : Channel
        Compacted channel of the kind.
    item : Schema
        Schema of an item of a list.
    """
    fields: dict[str, Schema] = {
        "v": constant(LIST_VERSION),
        "kind": constant(kind),
        "condition": described(STRING, "Name of the condition."),
        "version": POSITIVE,
        "key": described(STRING, "Join key, if the condition has one list per key."),
        "as_of": described(TIME_US, "Time up to which events have taken effect, in µs."),
        "detected_at": described(TIME_US, "Time at which the list was written, in µs."),
        "items": list_of(item, description="The whole list, the first place first."),
    }
    key = "CONDITION, or CONDITION/KEY if the condition has one list per join key."
    headers = result_headers(LIST_TYPE)
    too_large = {**fields, "error": constant("too_large"), "omitted_bytes": POSITIVE}
    del too_large["items"]
    return (
        RecordType(
            f"{kind}_list",
            "Present list of a condition; the newest record of a key replaces the others.",
            object_of(fields, ["key"]),
            key,
            headers,
            channel.name,
        ),
        RecordType(
            f"{kind}_list_withdrawn",
            "Tombstone: the list is empty, or its condition does not exist any more.",
            NULL,
            key,
            headers,
            channel.name,
        ),
        RecordType(
            f"{kind}_list_too_large",
            "List that exceeds the size limit of its topic, without its items and long strings.",
            object_of(too_large, [it for it in fields if it in _STRINGS]),
            key,
            headers_of({**headers["properties"], OMITTED_HEADER: OMITTED_BYTES}),
            channel.name,
        ),
    )
