"""Events with a histogram each, decided by quantiles, by probability, and as intervals."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.kernel import best_seconds
from benchmarks.ptj.comparing import WaysDifferError
from benchmarks.ptj.texts import OWN
from benchmarks.ptj.workload import WINDOWS_MS, draw_stream, draw_templates, mutual
from benchmarks.report import Report
from correlation.timing.histograms.classes import Classes, HistogramSide
from correlation.timing.histograms.lazy import correlate_lazy
from correlation.timing.histograms.locating import HOW, locate_block
from correlation.timing.histograms.pieces import CERTAIN
from correlation.timing.histograms.quantiles import (
    ABOVE_KEPT,
    ABOVE_LOST,
    EARLIEST,
    KNOWN,
    _decide_by_quantiles_kernel,
)
from correlation.timing.histograms.search import Search, make_search
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.intervals.lazy_lookup import correlate_lazy_lookup
from correlation.timing.intervals.pairs import Side
from correlation.timing.intervals.search import DOUBTFUL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Pairs

THRESHOLDS = ("0.5", "0.8", "0.95")
WAYS = ("quantiles", "probability", "intervals")
# Number of ranges of targets in the sample.
_RANGES = 200


class OwnPoint(NamedTuple):
    """Measurements at one window and threshold.

    Attributes
    ----------
    window_ms : int
        d.
    threshold : str
        δ.
    pairs, left_open : int
        Number of satisfied pairs, and of pairs that supports leave open.
    decided : float
        Share of the open pairs that quantiles decide, in a sample.
    seconds : mapping of str to float
        Processor time with quantiles, with probabilities, and of intervals on the same supports.
    """

    window_ms: int
    threshold: str
    pairs: int
    left_open: int
    decided: float
    seconds: dict[str, float]


def measure_own(*, quick: bool) -> list[OwnPoint]:
    """Search streams in which each event has its own shape."""
    rng = np.random.default_rng(2013)
    events = 200 if quick else 4_000
    a, b = _draw_side(events, rng), _draw_side(events, rng)
    return [
        _measure(a, b, window_ms, threshold, repeats=1 if quick else 5)
        for window_ms in WINDOWS_MS
        for threshold in THRESHOLDS
    ]


def _measure(
    a: HistogramSide, b: HistogramSide, window_ms: int, threshold: str, *, repeats: int
) -> OwnPoint:
    window = mutual(window_ms, threshold)
    groups = np.array([[0, len(a.latest), 0, len(b.latest)]], np.int64)

    def prepare() -> Search:
        return make_search(a, b, groups, window, None, exclude_same=False)

    search = prepare()
    telling_nothing = search.quantiles._replace(
        bases=_tell_nothing(a.classes), targets=_tell_nothing(b.classes)
    )

    def search_by_probability() -> Pairs:
        return correlate_lazy(prepare()._replace(quantiles=telling_nothing))

    pairs = correlate_lazy(search)
    if not np.array_equal(_codes(pairs, b), _codes(search_by_probability(), b)):
        raise WaysDifferError(f"quantiles: d {window_ms} ms, δ {threshold}")
    base, target = (Side(it.latest - it.classes.lengths[it.codes], it.latest) for it in (a, b))
    seconds = best_seconds(
        lambda: correlate_lazy(prepare()),
        search_by_probability,
        partial(correlate_lazy_lookup, base, target, groups, window, exclude_same=False),
        repeats=repeats,
    )
    return OwnPoint(
        window_ms,
        threshold,
        len(pairs.base_index),
        locate_block(search).probed,
        _share_decided(search),
        dict(zip(WAYS, seconds, strict=True)),
    )


def report_own(points: Sequence[OwnPoint]) -> Report:
    """Build the table."""
    rows = [
        [
            f"{point.window_ms:,} ms, {point.threshold}",
            f"{point.pairs:,}",
            f"{point.left_open:,}",
            f"{point.decided:.0%}",
            *(f"{point.seconds[way] / point.left_open * 1e9:.0f} ns" for way in WAYS[:2]),
            f"{point.seconds['probability'] / point.seconds['quantiles']:.1f}",
            f"{point.seconds['quantiles'] / point.seconds['intervals']:.1f}",
        ]
        for point in points
    ]
    return Report(
        "Beyond PTJ: events with histograms of their own",
        OWN,
        (
            *("d, δ", "pairs", "left open by supports", "of these, by quantiles"),
            *("time of each, with quantiles", "without", "without / with", "with / intervals"),
        ),
        rows,
    )


def _draw_side(events: int, rng: np.random.Generator) -> HistogramSide:
    shapes = draw_templates(events, rng)
    return HistogramSide(
        draw_stream(events, shapes, rng).latest,
        np.arange(events),
        Classes(pack_shapes(shapes), 0),
    )


def _tell_nothing(classes: Classes) -> NDArray[np.int64]:
    """Return quantiles that decide no pair that supports leave open."""
    found = np.zeros((len(classes), ABOVE_KEPT + 1), np.int64)
    found[:, KNOWN] = 1
    found[:, [EARLIEST, ABOVE_LOST, ABOVE_KEPT]] = -classes.lengths[:, np.newaxis]
    return found


def _codes(pairs: Pairs, b: HistogramSide) -> NDArray[np.int64]:
    return np.sort(pairs.base_index * len(b.latest) + pairs.target_index)


def _share_decided(search: Search) -> float:
    """Compute, for a sample, the share of the open pairs that known quantiles decide."""
    ranges = locate_block(search).ranges
    ranges = ranges[ranges[:, HOW] != CERTAIN]
    verdicts = [
        _decide_by_quantiles_kernel(
            search.quantiles.bases,
            search.base_codes[i],
            search.quantiles.targets,
            search.target_codes[j],
            search.target_latest[j] - search.base_latest[i],
            search.window,
        )
        for i, begin, end, _ in ranges[:: max(len(ranges) // _RANGES, 1)].tolist()
        for j in range(begin, end)
    ]
    return 1 - verdicts.count(DOUBTFUL) / len(verdicts)
