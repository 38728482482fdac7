"""The probabilistic timing join in four ways; all of them find the same pairs.

Every way splits the targets of a base event into those outside, those satisfied by position, and
those between, which are decided one by one:

- *plain*: all targets that the window can reach, each by its probability;
- *support* (PTJ Equations 4 to 6): ranges from the ends of the histograms alone, the same for
  every threshold; between them, by probability;
- *ranges* (Theorem 3): the tightest ranges of the base event's template; between them, by
  probability;
- *templates* (Theorems 2 and 3): the same ranges; between them by the satisfaction times of the
  two templates, and no probability at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.timing.histogram_filter import satisfied_shapes
from correlation.timing.shapes import Shapes, pack_shapes
from correlation.timing.template_ranges import (
    Grid,
    GridColumns,
    grid_bounds,
    make_grid,
    pack_grid,
    satisfied_templates,
    split_targets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.ptj.workload import Stream
    from correlation.histogram import Histogram
    from correlation.timing.window import TimingWindow

WAYS = ("plain", "support", "ranges", "templates")


class Prepared(NamedTuple):
    """What is known of a condition before events come.

    Attributes
    ----------
    window : TimingWindow
        The condition, wide for these templates.
    shapes_a, shapes_b : Shapes
        The templates of either stream.
    grid : Grid
        Their s-windows.
    columns : GridColumns
        The same as the kernels take it.
    ends : mapping of str to ndarray of int64, shape (templates of A, 4)
        Of each way and template of a base event: where its targets begin, where they are satisfied
        from and up to, and where they end, all included, as max_B - max_A, microseconds.
    """

    window: TimingWindow
    shapes_a: Shapes
    shapes_b: Shapes
    grid: Grid
    columns: GridColumns
    ends: dict[str, NDArray[np.int64]]


class Found(NamedTuple):
    """What a join found.

    Attributes
    ----------
    base, target : ndarray of int64, shape (k,)
        Satisfied pairs.
    looked_at : int
        Pairs that are not decided by lying outside.
    computed : int
        Pairs whose probability was computed.
    """

    base: NDArray[np.int64]
    target: NDArray[np.int64]
    looked_at: int
    computed: int


def prepare(us: Sequence[Histogram], vs: Sequence[Histogram], window: TimingWindow) -> Prepared:
    """Compute what does not depend on events."""
    grid = make_grid(us, vs, window)
    ends = {
        "plain": _plain_ends(us, vs, window),
        "support": _support_ends(us, vs, window),
        "ranges": _template_ends(grid),
    }
    ends["templates"] = ends["ranges"]
    return Prepared(window, pack_shapes(us), pack_shapes(vs), grid, pack_grid(grid), ends)


def _deadline_us(window: TimingWindow) -> int:
    if window.upper_us is None or window.lower_us != -window.upper_us:
        raise ValueError("window: these joins take a mutual deadline, as the paper does")
    return window.upper_us


def _plain_ends(
    us: Sequence[Histogram], vs: Sequence[Histogram], window: TimingWindow
) -> NDArray[np.int64]:
    d = _deadline_us(window)
    longest_a, longest_b = (max(it.length_us for it in templates) for templates in (us, vs))
    # Satisfied from the end of the reach on: nothing is, by position.
    row = [-d - longest_a, d + longest_b + 1, d + longest_b, d + longest_b]
    return np.array([row] * len(us))


def _support_ends(
    us: Sequence[Histogram], vs: Sequence[Histogram], window: TimingWindow
) -> NDArray[np.int64]:
    """PTJ Equations 4 to 6, from max(H_i) = 0."""
    d = _deadline_us(window)
    longest_b = max(it.length_us for it in vs)
    return np.array(
        [[-u.length_us - d, -d + longest_b, d - u.length_us, d + longest_b] for u in us]
    )


def _template_ends(grid: Grid) -> NDArray[np.int64]:
    """PTJ Theorem 3, row by row."""
    rows = []
    for row in grid:
        ranges = split_targets(row)
        spans = sorted((*ranges.satisfied, *ranges.probed))
        first, last = spans[0][0], spans[-1][1]
        sure = ranges.satisfied[0] if ranges.satisfied else (last + 1, last)
        rows.append([first, *sure, last])
    return np.array(rows)


def kept_us(prepared: Prepared, way: str, delay_us: int) -> int:
    """Compute for how much stream time an event is kept, the mean of both streams, microseconds.

    With `templates` the sliding window of PTJ Theorem 4, otherwise that of the reach of any pair.
    """
    if way == "templates":
        least, greatest = grid_bounds(prepared.grid)
    else:
        least = int(prepared.ends["plain"][:, 0].min())
        greatest = int(prepared.ends["plain"][:, 3].max())
    return delay_us + (greatest - least) // 2


def join(way: str, prepared: Prepared, a: Stream, b: Stream) -> Found:
    """Find the satisfied pairs.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    prepared : Prepared
        Of the condition.
    a, b : Stream
        The events.

    Returns
    -------
    Found
    """
    ends = prepared.ends[way][a.shape]
    first = np.searchsorted(b.latest, a.latest + ends[:, 0])
    sure = np.searchsorted(b.latest, a.latest + ends[:, 1])
    stop = np.searchsorted(b.latest, a.latest + ends[:, 2], side="right")
    last = np.searchsorted(b.latest, a.latest + ends[:, 3], side="right")
    sure = np.minimum(sure, last)
    stop = np.maximum(stop, sure)
    certain = _expand(sure, stop)
    parts = [_expand(first, sure), _expand(stop, last)]
    base, target = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    s = b.latest[target] - a.latest[base]
    shapes = a.shape[base], b.shape[target]
    if way == "templates":
        satisfied = satisfied_templates(prepared.columns, *shapes, s)
        computed = 0
    else:
        satisfied = satisfied_shapes(
            prepared.shapes_a, shapes[0], prepared.shapes_b, shapes[1], s, prepared.window
        )
        computed = len(base)
    return Found(
        np.concatenate([certain[0], base[satisfied]]),
        np.concatenate([certain[1], target[satisfied]]),
        len(certain[0]) + len(base),
        computed,
    )


def _expand(begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Write ranges of targets, one a base event, as pairs."""
    sizes = end - begin
    base = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return base, np.arange(len(base)) + (begin - starts)[base]


def pair_codes(found: Found, targets: int) -> NDArray[np.int64]:
    """Write pairs as sorted numbers, to compare what two joins found."""
    return np.sort(found.base * targets + found.target)
