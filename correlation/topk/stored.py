"""Stored state of the operator of a top-k condition, and withdrawal of its published lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from correlation.buffers.buffer import StreamBuffer
from correlation.operators import Evaluation, Result
from correlation.resources.attributes import attributes_to_document
from correlation.resources.role_filters import read_role_filters
from correlation.resources.streams import Stream
from correlation.resources.tokens import fingerprint
from correlation.topk.cells import Division, Key
from correlation.topk.condition import TopKCondition
from correlation.topk.gathering import Part, Range, gather_sets, list_keys
from correlation.topk.listed import KeyedList, ListedPair, list_moves
from correlation.topk.local import BUILT, NET, LocalList, Moment, SlotShare, Step, make_share
from correlation.topk.merging import merge_lists
from correlation.topk.results import CHANGES_METRIC, KeyedMoves, TopKChanges, present_lists
from correlation.two_streams import ROLES, Where


class StoredState(NamedTuple):
    """Stored state of the operator.

    Parameters
    ----------
    as_of_us : int
        Time up to which sets have taken effect, in µs.
    since_us : int
        First time that takes part, in µs.
    digest : str
        Digest of the declarations that decide which events are which sets.
    where : dict
        Filters with constants of the declared types, as JSON values; empty without filters.
    groups : int
        Number of groups of the grid; 1 without a grid.

    The form has no version: the versions of the manifest and of the published state cover it.
    """

    as_of_us: int
    since_us: int
    digest: str
    where: Mapping[str, object]
    groups: int = 1

    def to_bytes(self) -> bytes:
        """Write the state as JSON."""
        return json.dumps(self).encode()

    @classmethod
    def from_bytes(cls, blob: bytes) -> StoredState:
        """Read the output of `to_bytes`."""
        return cls(*json.loads(blob))

    def window(self, condition: TopKCondition) -> Range:
        """Return the times of the valid sets that take part."""
        return Range(max(self.as_of_us - condition.window_us, self.since_us), self.as_of_us)


def buffered_parts(condition: TopKCondition, buffers: Mapping[str, StreamBuffer]) -> list[Part]:
    """Return the segments of the condition's streams."""
    return [
        Part(side, segment)
        for side, name in enumerate(condition.streams)
        for _, segment in buffers[name].segments
    ]


def list_keys_of(condition: TopKCondition, parts: Sequence[Part], state: StoredState) -> list[Key]:
    """Return the keys of all lists that the state's lists may be."""
    if condition.per_key:
        return [*list_keys(parts, state.window(condition))]
    # A slot without events has no list, unless the lists of all slots are merged.
    return [None] if parts or state.groups > 1 else []


def digest_declarations(condition: TopKCondition, streams: Mapping[str, Stream]) -> str:
    """Return a digest of the declarations of tokens, and of the attributes that filters read."""
    declared: list[object] = []
    for name, wanted in zip((condition.a, condition.b), condition.where, strict=True):
        stream = streams[name]
        declared.append("" if stream.tokens is None else fingerprint(stream.tokens))
        declared.append([] if wanted is None else attributes_to_document(stream.attributes))
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()[:32]


def withdraw_lists(
    condition: TopKCondition, buffers: Mapping[str, StreamBuffer], state: bytes
) -> Evaluation:
    """Withdraw the lists of a condition; see `ConditionKind.withdraw`.

    Pairs of a list leave it with the reason `condition`. A list that cannot be built again, because
    a declaration changed in the meantime, is withdrawn without them.
    """
    stored, parts = StoredState.from_bytes(state), buffered_parts(condition, buffers)
    where = Where(**read_role_filters(stored.where or None, ROLES, "where"))
    division = Division(condition.per_key, stored.groups, condition.crossed)
    listed: list[tuple[Key, list[ListedPair]]] = []
    for key, sets in gather_sets(parts, stored.window(condition), where, division):
        found = KeyedList(condition, crossed=division.is_crossed(key))
        found.rebuild(sets)
        listed.append((key, found.pairs))
    if division.has_cells:
        local = merge_lists([LocalList(pairs, ()) for _, pairs in listed], condition.k)
        withdrawn = Step((BUILT, *NET), stored.as_of_us, local.before, ())
        moment = Moment(stored.as_of_us, built="condition", is_lost=True)
        local = local._replace(steps=[withdrawn])
        return Evaluation(shares=[make_share(SlotShare(condition, moment, local))])
    changes = [
        KeyedMoves(key, list(list_moves(pairs, (), stored.as_of_us, "condition")))
        for key, pairs in listed
        if pairs
    ]
    results: list[Result] = []
    if changes:
        results.append(TopKChanges(condition, changes))
    count = sum(len(it.moves) for it in changes)
    if keys := list_keys_of(condition, parts, stored):
        results.append(present_lists(condition, stored.as_of_us, [(key, ()) for key in keys]))
    return Evaluation(results, count, [(CHANGES_METRIC, {"condition": condition.name}, count)])
