"""The most probable target of each base event.

Problem. Of the targets that satisfy the condition with a base event, find the target of the max
satisfaction probability, exactly: equal lengths make ties common, and rounding must not break them.

Definitions. With K, u, v, m and M as in intervals.exact, the *loss* of a pair is
(K(u) + K(v)) / 2mM = 1 - P. Of two targets the better one has the smaller loss. If the losses are
equal, the better one is the target whose expected time is nearer to that of the base event; then
the earlier target, by latest, earliest and id, byte by byte; then a target that is not late. Two
targets that still compare equal look the same in an alarm.

Algorithm. Targets outside [LH, RH] are violated (P-REGIONS). Each target inside is compared with
the best so far. Only targets before the first satisfied one are decided: a target whose loss does
not exceed that of a satisfied target is satisfied. The comparison is filtered as the decision is:
the relative float64 error of a loss is less than 2**-50, and only if two losses differ by no more
than the error, the integers K(u) + K(v) are multiplied crosswise (docs/proofs.md, P-BEST).

Reference. LL10 sections 3 and 4.1; Fortune and Van Wyk, as in intervals.exact.

Cost. O(log t) per base event of t targets, and O(1) for each target in reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numba import njit

from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.exact import (
    _DIGIT_BITS,
    _DIGIT_MASK,
    ROUNDING_BOUND,
    _carry_digits_kernel,
    _decide_depths_kernel,
    _measure_cut_kernel,
    _split_cut_kernel,
)
from correlation.timing.intervals.pairs import Side, check_inputs, range_lengths
from correlation.timing.intervals.regions import _locate_event_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.buffers.columns import BytesColumn
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

_Scalar = TypeVar("_Scalar", bound=np.generic)
_DIGITS = 4
# Row number for "no target": no satisfied target, or no target to leave out.
NONE = -1


class Targets(NamedTuple):
    """Targets, with the columns that order targets of the same time.

    Attributes
    ----------
    side : Side
        Times of the targets.
    id : BytesColumn
        Ids of the targets.
    late : ndarray of bool, shape (n,)
        Whether each target arrived late.
    """

    side: Side
    id: BytesColumn
    late: NDArray[np.bool_]


class Best(NamedTuple):
    """The best target of each base event.

    Attributes
    ----------
    rows : ndarray of int64, shape (b,)
        Position of the best target of each base event; NONE if no target is satisfied.
    looked_at : int
        Number of targets in reach of the base events.
    """

    rows: NDArray[np.int64]
    looked_at: int


def find_best(
    base: Side,
    targets: Targets,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    left_out: NDArray[np.int64],
    target_lengths: tuple[int, int] | None = None,
) -> Best:
    """Find the best target of each base event.

    Parameters
    ----------
    base, groups, window, target_lengths
        As in `pairs.Correlate`.
    targets : Targets
        As `target` in `pairs.Correlate`, with ids and lateness.
    left_out : ndarray of int64, shape (b,)
        Position of the target that is the base event itself, else NONE.

    Returns
    -------
    Best
    """
    base, target, groups = check_inputs(base, targets.side, groups)
    _, lengths = range_lengths(base, target, groups, target_lengths)
    rows = np.full(len(base.latest), NONE, np.int64)
    looked_at = _find_best_kernel(
        base,
        target,
        (_read_only(targets.id.data), as_column(targets.id.offsets)),
        _read_only(targets.late),
        groups,
        window.scalars(),
        lengths,
        as_column(left_out),
        rows,
    )
    return Best(rows, int(looked_at))


def compare_targets(base: Side, one: Side, other: Side, window: TimingWindow) -> NDArray[np.int64]:
    """Compare two satisfied targets of each base event by their times, exactly.

    Parameters
    ----------
    base, one, other : Side
        Columns of equal length: one base event and two targets per row.
    window : TimingWindow
        The condition.

    Returns
    -------
    ndarray of int64, shape (b,)
        Negative if `one` is better, positive if `other` is better, zero if ids decide.
    """
    order = np.empty(len(base.latest), np.int64)
    events, ours, theirs = (Side(*map(as_column, side)) for side in (base, one, other))
    _compare_sides_kernel(events, ours, theirs, window.scalars(), order)
    return order


def _read_only(column: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a contiguous read-only view; see `intervals.arguments`."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


@njit(cache=True)
def _find_best_kernel(
    base: Side,
    target: Side,
    ids: tuple[NDArray[np.uint8], NDArray[np.int64]],
    late: NDArray[np.bool_],
    groups: NDArray[np.int64],
    window: WindowScalars,
    lengths: tuple[int, int],
    left_out: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """Fill `rows`; return the number of targets in reach."""
    looked_at = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            a1 = base.earliest[i]
            a2 = base.latest[i]
            begin, _, _, end = _locate_event_kernel(
                a1, a2, target.latest, groups[g, 2], groups[g, 3], lengths, window
            )
            looked_at += end - begin
            best = NONE
            for j in range(begin, end):
                if j == left_out[i]:
                    continue
                b1 = target.earliest[j]
                b2 = target.latest[j]
                if best == NONE:
                    if _decide_depths_kernel(
                        window.lower + a2 - b1, b2 - window.upper - a1, a2 - a1, b2 - b1, window
                    ):
                        best = j
                    continue
                order = _compare_times_kernel(
                    a1, a2, b1, b2, target.earliest[best], target.latest[best], window
                )
                if order == 0:
                    order = _compare_ids_kernel(ids, j, best)
                if order < 0 or (order == 0 and late[best] and not late[j]):
                    best = j
            rows[i] = best
    return looked_at


@njit(cache=True)
def _compare_sides_kernel(
    base: Side, one: Side, other: Side, window: WindowScalars, order: NDArray[np.int64]
) -> None:
    for i in range(len(order)):
        order[i] = _compare_times_kernel(
            base.earliest[i],
            base.latest[i],
            one.earliest[i],
            one.latest[i],
            other.earliest[i],
            other.latest[i],
            window,
        )


@njit(cache=True)
def _compare_times_kernel(
    a1: int, a2: int, b1: int, b2: int, c1: int, c2: int, window: WindowScalars
) -> int:
    """Return -1 if target [b1, b2] of [a1, a2] is better than [c1, c2], 0 if equal, else 1."""
    order: int = _compare_losses_kernel(
        a2 - a1,
        (window.lower + a2 - b1, b2 - window.upper - a1, b2 - b1),
        (window.lower + a2 - c1, c2 - window.upper - a1, c2 - c1),
    )
    if order != 0:
        return order
    # Twice the distance of the expected times.
    distance = abs((b1 + b2) - (a1 + a2)) - abs((c1 + c2) - (a1 + a2))
    if distance != 0:
        return -1 if distance < 0 else 1
    if b2 != c2:
        return -1 if b2 < c2 else 1
    if b1 != c1:
        return -1 if b1 < c1 else 1
    return 0


@njit(cache=True)
def _compare_losses_kernel(a: int, one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    """Return the sign of the difference of the losses of two targets (u, v, length)."""
    loss = _measure_loss_kernel(one[0], one[1], a, one[2])
    other_loss = _measure_loss_kernel(other[0], other[1], a, other[2])
    difference = loss - other_loss
    if abs(difference) > ROUNDING_BOUND * (loss + other_loss):
        return -1 if difference < 0.0 else 1
    # Both losses are zero (zero is exact), or both targets have the same times.
    if loss + other_loss == 0.0 or one == other:
        return 0
    order: int = _compare_crosswise_kernel(a, one, other)
    return order


@njit(cache=True)
def _measure_loss_kernel(u: int, v: int, a: int, b: int) -> float:
    """Compute the loss 1 - P in float64."""
    small = min(a, b)
    large = max(a, b)
    if large == 0:
        return 0.0 if u <= 0 and v <= 0 else 1.0
    if small == 0:
        return (float(min(max(u, 0), large)) + float(min(max(v, 0), large))) / float(large)
    whole = 2.0 * float(small) * float(large)
    lost = _measure_cut_kernel(u, small, large, whole) + _measure_cut_kernel(v, small, large, whole)
    return lost / whole


@njit(cache=True)
def _compare_crosswise_kernel(
    a: int, one: tuple[int, int, int], other: tuple[int, int, int]
) -> int:
    """Return the sign of the difference of two losses, by crosswise integer multiplication."""
    lost, whole = _count_loss_kernel(one[0], one[1], a, one[2])
    other_lost, other_whole = _count_loss_kernel(other[0], other[1], a, other[2])
    carry = 0
    rest = 0
    for place in range(2 * _DIGITS - 1):
        for i in range(max(place - _DIGITS + 1, 0), min(place, _DIGITS - 1) + 1):
            carry += lost[i] * other_whole[place - i] - other_lost[i] * whole[place - i]
        rest |= carry & _DIGIT_MASK
        carry >>= _DIGIT_BITS
    if carry != 0:
        return -1 if carry < 0 else 1
    return 1 if rest != 0 else 0


@njit(cache=True)
def _count_loss_kernel(
    u: int, v: int, a: int, b: int
) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """Compute K(u) + K(v) and 2mM (see intervals.exact for length zero), in digits of 24 bits."""
    small = min(a, b)
    large = max(a, b)
    if large == 0:
        return (0 if u <= 0 and v <= 0 else 1, 0, 0, 0), (1, 0, 0, 0)
    u0, u1, u2 = _split_cut_kernel(u, small, large)
    v0, v1, v2 = _split_cut_kernel(v, small, large)
    t0, t1, t2 = _split_cut_kernel(small + large, small, large)
    lost = _carry_digits_kernel(u0 + v0, u1 + v1, u2 + v2)
    return lost, _carry_digits_kernel(t0, t1, t2)


@njit(cache=True)
def _compare_ids_kernel(
    ids: tuple[NDArray[np.uint8], NDArray[np.int64]], one: int, other: int
) -> int:
    """Return the sign of the comparison of two ids, byte by byte."""
    data, offsets = ids
    length = offsets[one + 1] - offsets[one]
    other_length = offsets[other + 1] - offsets[other]
    for k in range(min(length, other_length)):
        difference = np.int64(data[offsets[one] + k]) - np.int64(data[offsets[other] + k])
        if difference != 0:
            return -1 if difference < 0 else 1
    if length == other_length:
        return 0
    return -1 if length < other_length else 1
