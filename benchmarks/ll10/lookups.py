"""LL10 Figure 7: the hit ratio of the look-up table, for every reading of Algorithm 7.

Readings. *As printed*, a pair that finds a usable violated entry is computed, and its result is not
stored (lines 9 to 11). *By the prose* of section 4.2, the result is stored: an entry is the last
computed base event. *Satisfied entries* keeps the most useful satisfied base event. `lazy_lookup`
also carries violations over from target to target of a base event.

Regions. The probe regions are ours and those of the paper, whose left probe region is bounded by
the length d of a target instead of π (its section 5: up to d - ρ wide).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from benchmarks.kernel import mutual
from benchmarks.ll10.arrivals import Workload, cut_by_size, draw_arrivals
from benchmarks.ll10.blocks import DEADLINE_MS, RATE, SIZES, THRESHOLDS
from benchmarks.ll10.measuring import DifferentPairsError
from benchmarks.ll10.simulator import play_blocks
from benchmarks.ll10.texts import FIGURE_7
from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_ticks
from benchmarks.report import Picture, Report
from correlation.timing.intervals.collecting import _collect_certain_kernel, make_columns
from correlation.timing.intervals.exact import _decide_depths_kernel
from correlation.timing.intervals.lazy_lookup import collect_probed
from correlation.timing.intervals.locating import Located, locate_block
from correlation.timing.intervals.pairs import LOOKUP, PROBE, Pairs, ProbeCounts, check_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.ll10.simulator import Measured
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Readings of Algorithm 7.
PRINTED, PROSE, SATISFIED, OURS = READINGS = (
    "as printed",
    "by the prose",
    "satisfied entries",
    "lazy_lookup",
)
REGIONS = ("our regions", "the paper's regions")
_LEFT, _RIGHT = 0, 2


class LookupPoint(NamedTuple):
    """Measurements of all readings at one threshold and block size.

    Attributes
    ----------
    threshold : str
        ct.
    size : int
        Block size in events of a stream.
    runs : dict of (str, str) to Measured
        Measurements by regions and reading.
    """

    threshold: str
    size: int
    runs: dict[tuple[str, str], Measured]


def run(*, quick: bool = False) -> list[Report]:
    """Measure Figure 7."""
    return [report_lookups(measure_lookups(quick=quick))]


def measure_lookups(*, quick: bool) -> list[LookupPoint]:
    """Run all readings once at all block sizes: hits are counted, not timed.

    Raises
    ------
    DifferentPairsError
        When the numbers of pairs differ.
    """
    points = []
    for threshold in THRESHOLDS:
        workload = Workload(RATE, 4_000 if quick else 20_000, mutual(DEADLINE_MS, threshold))
        arrivals = draw_arrivals(workload)
        for size in (200, 2_000) if quick else SIZES:
            blocks = cut_by_size(arrivals, size)
            runs = {
                (regions, reading): play_blocks(
                    partial(correlate_reading, reading=reading, is_loose=regions != REGIONS[0]),
                    workload,
                    arrivals,
                    blocks,
                )
                for regions in REGIONS
                for reading in READINGS
            }
            found = {measured.pairs for measured in runs.values()}
            if len(found) > 1:
                raise DifferentPairsError(f"{workload}: {sorted(found)} pairs")
            points.append(LookupPoint(threshold, size, runs))
    return points


def report_lookups(points: Sequence[LookupPoint]) -> Report:
    """Build the table and plot of Figure 7."""
    figure, axes = make_axes(
        "block, events of a stream", "hit ratio of the look-up table, %", len(THRESHOLDS)
    )
    sizes = sorted({point.size for point in points})
    for axis, threshold in zip(axes, THRESHOLDS, strict=True):
        mine = [point for point in points if point.threshold == threshold]
        lines = {
            f"{reading}, {regions}": [
                100 * point.runs[regions, reading].hit_ratio for point in mine
            ]
            for reading in READINGS
            for regions in REGIONS
        }
        draw_lines(axis, sizes, lines)
        axis.set_title(f"ct {threshold}", fontsize=10)
        show_plain_ticks(axis, sizes[1::3])
    axes[0].set_ylim(0, 100)
    add_legend(figure, axes[0], columns=2)
    rows = [
        [
            point.threshold,
            f"{point.size:,}",
            *(
                f"{100 * point.runs[regions, reading].hit_ratio:.1f}%"
                for regions in REGIONS
                for reading in READINGS
            ),
        ]
        for point in points
    ]
    title = "LL10 Figure 7: hit ratio against the block size"
    headings = (f"{reading}, {regions}" for regions in REGIONS for reading in READINGS)
    return Report(
        title,
        FIGURE_7,
        ("ct", "block", *headings),
        rows,
        [Picture("ll10-7-hits", title, figure)],
    )


def correlate_reading(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
    reading: str,
    is_loose: bool,
) -> Pairs:
    """Find the satisfied pairs by one reading of Algorithm 7; see `pairs.Correlate`.

    Parameters
    ----------
    base, target, groups, window, exclude_same, target_lengths
        Arguments of `pairs.Correlate`; the window is wide.
    reading : str
        One of READINGS.
    is_loose : bool
        Whether to use the paper's left probe region.
    """
    base, target, groups = check_inputs(base, target, groups)
    located = locate_block(base, target, groups, window, target_lengths)
    if is_loose and target_lengths is not None:
        located = _loosen(located, base, target, groups, window, target_lengths[0])
    out = make_columns(located.certain + located.probed)
    found = _collect_certain_kernel(groups, located.rows, exclude_same, out[0], out[1])
    if reading == OURS:
        found, counts = collect_probed(
            base, target, groups, located, window.scalars(), out, found, exclude_same=exclude_same
        )
        return Pairs(out[0][:found], out[1][:found], out[2][:found], counts)
    probed = hits = 0
    for side in (_LEFT, _RIGHT):
        # Earliest time and verdict of each entry.
        table = (
            np.full(len(target.latest), np.iinfo(np.int64).min),
            np.zeros(len(target.latest), np.bool_),
        )
        found, more, decided = _read_table_kernel(
            base.earliest,
            base.latest,
            target.earliest,
            target.latest,
            groups,
            located.rows,
            side,
            READINGS.index(reading),
            window.scalars(),
            table,
            out,
            found,
        )
        probed += int(more)
        hits += int(decided)
    counts = ProbeCounts(probed, hits, probed - hits)
    return Pairs(out[0][:found], out[1][:found], out[2][:found], counts)


def _loosen(
    located: Located,
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    min_uncertainty_us: int,
) -> Located:
    """Extend the left probe regions to the LL of targets of length d."""
    rows = located.rows.copy()
    max_uncertainty_us = window.upper_us or 0
    loose = locate_block(
        base, target, groups, window, (min_uncertainty_us, max_uncertainty_us)
    ).rows
    rows[:, 1] = np.clip(loose[:, 1], rows[:, 1], rows[:, 2])
    left, sure, right, stop = rows.T
    return Located(rows, int((right - sure).sum()), int((sure - left + stop - right).sum()))


@njit(cache=True)
def _read_table_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    side: int,
    reading: int,
    window: WindowScalars,
    table: tuple[NDArray[np.int64], NDArray[np.bool_]],
    out: Columns,
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of the left or right probe regions; keys do not share targets.

    Returns the number of pairs, the size of the probe regions and the look-up hits.
    """
    base_index, target_index, decided_by = out
    times, verdicts = table
    unused = np.iinfo(np.int64).min
    sign = 1 if side == _LEFT else -1
    probed = 0
    hits = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        for n in range(count):
            k = count - 1 - n if side == _LEFT else n
            i = groups[g, 0] + k
            earliest = base_earliest[i]
            latest = base_latest[i]
            for j in range(located[row + k, side], located[row + k, side + 1]):
                probed += 1
                is_usable = times[j] != unused and sign * earliest <= times[j]
                how = LOOKUP
                if is_usable and verdicts[j]:
                    hits += 1
                else:
                    how = PROBE
                    is_satisfied = _decide_depths_kernel(
                        window.lower + latest - target_earliest[j],
                        target_latest[j] - window.upper - earliest,
                        latest - earliest,
                        target_latest[j] - target_earliest[j],
                        window,
                    )
                    if reading == 0:  # PRINTED
                        is_stored = not is_usable
                    elif reading == 1:  # PROSE
                        is_stored = True
                    else:
                        is_stored = is_satisfied
                    if is_stored:
                        times[j] = sign * earliest
                        verdicts[j] = is_satisfied
                    if not is_satisfied:
                        continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = how
                found += 1
        row += count
    return found, probed, hits
