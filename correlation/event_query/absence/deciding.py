"""Decision of many positive events: by position, in float64, and in integers where these are open.

Cost. As in `gathering` and `filter`; `exact` only for doubtful cases, once for equal cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.event_query.absence.barring import Barred
from correlation.event_query.absence.exact import Candidate, absence_probability
from correlation.event_query.absence.filter import ABSENT, DOUBTFUL, filter_cases, measure_cases
from correlation.event_query.absence.gathering import Cases, gather_cases
from correlation.event_query.absence.instants import InstantTable
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import (
    FIRST_NEGATED,
    FIRST_POSITIVE,
    INFINITE_US,
    Box,
    Interval,
    Window,
    interval_of,
)
from correlation.resources.histogram import Histogram

POSITION, FILTER, EXACT = range(3)
# Names of the ways in which a positive event is decided, in the order of `Decisions.counts`.
DECIDED_BY = ("position", "filter", "exact")


class Decisions(NamedTuple):
    """Decisions about k positive events.

    Attributes
    ----------
    reported : ndarray of bool, shape (k,)
        Whether P ≥ threshold.
    decided_by : ndarray of uint8, shape (k,)
        POSITION, FILTER or EXACT.
    probability : ndarray of float64, shape (k,)
        P of the reported events, NaN of the others.
    error : ndarray of float64, shape (k,)
        Bound of the error of `probability`; 0 where it is P, correctly rounded.
    """

    reported: NDArray[np.bool_]
    decided_by: NDArray[np.uint8]
    probability: NDArray[np.float64]
    error: NDArray[np.float64]

    @property
    def counts(self) -> dict[str, int]:
        """Number of positive events decided in each way."""
        counts = np.bincount(self.decided_by, minlength=len(DECIDED_BY)).tolist()
        return dict(zip(DECIDED_BY, counts, strict=True))


def decide_absences(
    positives: InstantTable,
    negated: Sequence[Negated],
    threshold: Decimal | Fraction,
    barred: Barred | None = None,
) -> Decisions:
    """Decide exactly which positive events no candidate stops, and how probable that is.

    Parameters
    ----------
    positives : InstantTable
        k positive events.
    negated : sequence of Negated
        Candidates of all negated aliases; an alias with several tables has one entry for each.
    threshold : Decimal or Fraction
        Minimum probability, above 0 and at most 1.
    barred : Barred or None
        Times at which positive events are stopped with certainty.

    Returns
    -------
    Decisions
        The same decisions as over the rationals.

    Raises
    ------
    ValueError
        The threshold is out of range, or an entry has another number of positive events.
    """
    minimum = Fraction(threshold)
    if not 0 < minimum <= 1:
        raise ValueError(f"threshold: must be above 0 and at most 1; got {threshold}")
    stopped, cases = gather_cases(positives, negated, barred)
    alone = np.diff(cases.starts) == 0
    verdicts = filter_cases(cases, minimum)
    decided_by = np.where(alone, POSITION, FILTER).astype(np.uint8)
    reported = (verdicts == ABSENT) & ~stopped
    probability = np.where(reported, 1.0, np.nan)
    error = np.zeros(len(reported))
    measured = np.flatnonzero(reported & ~alone)
    probability[measured], error[measured] = measure_cases(cases, measured)
    known: dict[bytes, Fraction] = {}
    for i in np.flatnonzero(verdicts == DOUBTFUL).tolist():
        key = _make_key(cases, i)
        if key not in known:
            known[key] = absence_probability(*exact_case(cases, i))
        decided_by[i] = EXACT
        reported[i] = known[key] >= minimum
        probability[i] = float(known[key]) if reported[i] else np.nan
    return Decisions(reported, decided_by, probability, error)


def exact_case(cases: Cases, i: int) -> tuple[Histogram, list[Candidate]]:
    """Return a positive event and its candidates for `exact`."""
    part = range(int(cases.starts[i]), int(cases.starts[i + 1]))
    return cases.positives.histogram(i), [
        Candidate(cases.candidates.histogram(c), _read_window(cases, int(cases.window[c])))
        for c in part
    ]


def _read_window(cases: Cases, row: int) -> Window:
    window: list[Interval | Box] = []
    for v, ends in enumerate(zip(cases.lo[row].tolist(), cases.hi[row].tolist(), strict=True)):
        if ends[0] <= ends[1]:
            it = interval_of(*ends)
            fixed = None if cases.cuts is None else cases.cuts[row, v]
            if fixed is None or (np.abs(fixed) == INFINITE_US).all():
                window.append(it)
            else:
                both = (fixed[at : at + 2].tolist() for at in (FIRST_NEGATED, FIRST_POSITIVE))
                window.append(Box(it, *(interval_of(*pair) for pair in both)))
    return tuple(window)


def _make_key(cases: Cases, i: int) -> bytes:
    """Return the same key for cases that differ only in their place in time."""
    part = slice(int(cases.starts[i]), int(cases.starts[i + 1]))
    rows, latest = cases.window[part], cases.positives.latest[i]
    columns = [
        cases.positives.shape[i : i + 1],
        cases.positives.earliest[i : i + 1] - latest,
        cases.candidates.shape[part],
        cases.candidates.earliest[part] - latest,
        cases.candidates.latest[part] - latest,
        cases.lo[rows],
        cases.hi[rows],
    ]
    if cases.cuts is not None:
        cuts = cases.cuts[rows]
        columns.append(np.where(np.abs(cuts) == INFINITE_US, cuts, cuts - latest))
    return b"".join(it.tobytes() for it in columns)
