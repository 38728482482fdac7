"""Merge of the shares that the slots return in a block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from correlation.errors import CorrelationError
from correlation.kinds import KINDS
from correlation.operators import Evaluation, Share


class MissingShareError(CorrelationError):
    """Raised when a slot has not returned a share that other slots have returned."""


class Merged(NamedTuple):
    """Merged shares of a condition.

    Parameters
    ----------
    condition : str
        Name of the condition.
    evaluation : Evaluation or None
        Results of all slots; None: the condition was removed, and its totals end.
    is_live : bool
        Whether all streams of the condition follow the wall clock.
    """

    condition: str
    evaluation: Evaluation | None
    is_live: bool = False


def join_shares(slots: Sequence[Sequence[Share]]) -> list[list[Share]]:
    """Return shares of consecutive blocks as those of one block.

    Parameters
    ----------
    slots : sequence of (sequence of Share)
        The shares of every slot in order. Slots may have shares of different numbers of blocks.

    Returns
    -------
    list of (list of Share)
        The shares of versions of which all slots have the same number, and one share of each slot
        for the others. Versions of which a slot has no share are left out, and those of kinds that
        cannot join shares. Ends of conditions, which have no blob, are never left out.
    """
    found: dict[tuple[str, str, int], list[list[Share]]] = {}
    for number, shares in enumerate(slots):
        for it in shares:
            name = (it.kind if it.blob else "", it.condition, it.version)
            found.setdefault(name, [[] for _ in slots])[number].append(it)
    joined: list[list[Share]] = [[] for _ in slots]
    for (kind, _, _), parts in found.items():
        if len({len(mine) for mine in parts}) == 1:
            for mine, part in zip(joined, parts, strict=True):
                mine.extend(part)
            continue
        if not kind:
            # One slot says enough.
            for mine, part in zip(joined, parts, strict=True):
                mine.extend(part[-1:])
            continue
        if not all(parts) or (join := KINDS[kind].join_shares) is None:
            continue
        blobs = join([[it.blob for it in mine] for mine in parts])
        for mine, part, blob in zip(joined, parts, blobs, strict=True):
            changes = any(it.has_changes for it in part)
            mine.append(part[-1]._replace(blob=blob, has_changes=changes))
    return joined


def merge_shares(slots: Sequence[Sequence[Share]]) -> list[Merged]:
    """Merge the shares of a block.

    Parameters
    ----------
    slots : sequence of (sequence of Share)
        The shares of every slot, in their order; slots without shares are included.

    Returns
    -------
    list of Merged
        Results in the order of the shares; those of the previous version of a condition first.

    Raises
    ------
    MissingShareError
        A slot has no share of a condition of which another slot has one.
    """
    found: dict[tuple[str, str, int, int], list[Share]] = {}
    for shares in slots:
        seen: Counter[tuple[str, str, int]] = Counter()
        for share in shares:
            # A condition has two shares in a block that withdraws its list and begins another; if
            # it was removed in between, the end of its totals is a third.
            key = (share.kind if share.blob else "", share.condition, share.version)
            found.setdefault((*key, seen[key]), []).append(share)
            seen[key] += 1
    merged = []
    for (kind, condition, version, _), shares in found.items():
        if not shares[0].blob:
            merged.append(Merged(condition, None))
            continue
        merge = KINDS[kind].merge_shares
        if merge is None or len(shares) != len(slots):
            raise MissingShareError(
                f"condition {condition}, version {version}: {len(shares)} of {len(slots)} slots "
                "returned a share"
            )
        if any(it.has_changes for it in shares):
            evaluation = merge([it.blob for it in shares])
            merged.append(Merged(condition, evaluation, shares[0].is_live))
    return merged
