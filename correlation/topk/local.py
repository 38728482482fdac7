"""Local lists: what each slot contributes to a list of all cells of a grid.

Every list of a cell is a local list of its slot, and the local lists of a slot are merged into one.
A share is the local list of a slot before a block, and its changes in the block by steps. Steps of
the same event have the same order in all slots, so `merging` can apply them together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from correlation.limits import UNKNOWN_WATERMARK
from correlation.operators import Share
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, ListEvent, SetRef
from correlation.topk.similarities import SIMILARITIES

# Stages of a block: lists are built for a new condition or after a reset; then sets take effect.
BUILT, ADVANCED = range(2)
# Phases of a moment: sets of a time take effect while the sets that expire after it are valid.
_SETS, _EXPIRY = range(2)
# Stage, time in µs, phase, and side and id of the set that took effect.
Order = tuple[int, int, int, int, bytes]
# The order, without its stage, of the only step of a stage.
NET = (0, 0, 0, b"")


class Step(NamedTuple):
    """Pairs that left a list and entered it at one step of a block.

    Parameters
    ----------
    order : tuple
        Order of the step in the block; equal orders in several slots are the same event.
    time_us : int
        Time of the event, in µs.
    left, entered : sequence of ListedPair
        The pairs, without those that moved.
    """

    order: Order
    time_us: int
    left: Sequence[ListedPair]
    entered: Sequence[ListedPair]


class LocalList(NamedTuple):
    """A list before a block, best pair first, and its steps in the block, in order."""

    before: Sequence[ListedPair]
    steps: Sequence[Step]


class Moment(NamedTuple):
    """Times and reasons of a block; equal in all slots that evaluate it, except `is_late`.

    Parameters
    ----------
    as_of_us : int
        Time up to which sets have taken effect after the block, in µs.
    previous_us : int
        The same before the block, in µs.
    built : str
        Why the lists were built at the begin of the block: condition, reset, or empty.
    is_late : bool
        Whether sets that came late have changed a list of the slot.
    is_lost : bool
        Whether the list before the block is not known, and must be replaced.
    is_net : bool
        Whether the step is the net change of several blocks, even if every event is reported.
    """

    as_of_us: int = UNKNOWN_WATERMARK
    previous_us: int = UNKNOWN_WATERMARK
    built: str = ""
    is_late: bool = False
    is_lost: bool = False
    is_net: bool = False


class SlotShare(NamedTuple):
    """The share of a slot in a block.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    moment : Moment
        The block's moment.
    local : LocalList
        The slot's local list.
    arrived_us : mapping of SetRef to int
        Kafka's timestamps of the records of the block that are sets of pairs that entered, in µs.
    """

    condition: TopKCondition
    moment: Moment
    local: LocalList
    arrived_us: Mapping[SetRef, int] = MappingProxyType({})

    def to_bytes(self) -> bytes:
        """Write the share as JSON."""
        condition, moment, local, arrived_us = self
        document = {
            "condition": [getattr(condition, name) for name in _FIELDS],
            "similarity": condition.similarity.name,
            "moment": moment,
            "before": [*map(_write_pair, local.before)],
            "steps": [
                [
                    [*it.order[:-1], _write_id(it.order[-1])],
                    it.time_us,
                    [*map(_write_pair, it.left)],
                    [*map(_write_pair, it.entered)],
                ]
                for it in local.steps
            ],
            "arrived": [[*_write_ref(ref), it] for ref, it in arrived_us.items()],
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, blob: bytes) -> SlotShare:
        """Read the output of `to_bytes`."""
        document: Mapping[str, Any] = json.loads(blob)
        fields = dict(zip(_FIELDS, document["condition"], strict=True))
        condition = TopKCondition(similarity=SIMILARITIES[document["similarity"]], **fields)
        steps = [
            Step(
                (order[0], order[1], order[2], order[3], _read_id(order[4])),
                time_us,
                [*map(_read_pair, left)],
                [*map(_read_pair, entered)],
            )
            for order, time_us, left, entered in document["steps"]
        ]
        local = LocalList([*map(_read_pair, document["before"])], steps)
        arrived_us = {_read_ref(ref): it for *ref, it in document["arrived"]}
        return cls(condition, Moment(*document["moment"]), local, arrived_us)


def make_share(share: SlotShare) -> Share:
    """Return a share as slots exchange it."""
    condition, moment, local, _ = share
    has_changes = bool(local.steps) or moment.is_lost
    name = (condition.kind, condition.name, condition.version)
    return Share(*name, share.to_bytes(), has_changes)


# Fields of the condition that results depend on.
_FIELDS = ("name", "version", "a", "b", "k", "window_us", "every", "output_topic")


def _write_pair(pair: ListedPair) -> list[object]:
    return [pair.key, pair.overlap, _write_ref(pair.older), _write_ref(pair.newer)]


def _read_pair(written: Sequence[Any]) -> ListedPair:
    key, overlap, older, newer = written
    return ListedPair(key, overlap, _read_ref(older), _read_ref(newer))


def _write_ref(ref: SetRef) -> list[object]:
    return [ref.time_us, ref.side, _write_id(ref.id), ref.size]


def _read_ref(written: Sequence[Any]) -> SetRef:
    time_us, side, name, size = written
    return SetRef(time_us, side, _read_id(name), size)


# Ids may be any bytes, which JSON cannot contain.
def _write_id(name: bytes) -> str:
    return name.decode("latin-1")


def _read_id(name: str) -> bytes:
    return name.encode("latin-1")


def steps_of(events: Iterable[ListEvent], *, every: bool) -> Iterator[Step]:
    """Yield the steps of a list of a cell.

    Parameters
    ----------
    events : iterable of ListEvent
        Events of the list, in order.
    every : bool
        Whether events are single sets and expiries, otherwise the net change of the block.
    """
    for reason, time_us, moves in events:
        left = [it.pair for it in moves if it.change == "left"]
        entered = [it.pair for it in moves if it.change == "entered"]
        if left or entered:
            yield Step(_order(reason, time_us, entered, every=every), time_us, left, entered)


def _order(reason: str, time_us: int, entered: Sequence[ListedPair], *, every: bool) -> Order:
    if reason not in {"set", "expiry"}:
        return (BUILT, *NET)
    if not every:
        return (ADVANCED, *NET)
    if reason == "expiry" or not entered:
        return (ADVANCED, time_us, _EXPIRY, 0, b"")
    # All pairs that enter because of a set are pairs of this set.
    cause = entered[0].newer
    return (ADVANCED, time_us, _SETS, cause.side, cause.id)


def is_expiry(order: Order) -> bool:
    """Return whether the step is an expiry of sets, if steps are single events."""
    return order[2] == _EXPIRY
