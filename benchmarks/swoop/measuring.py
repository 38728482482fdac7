"""Run operators over the same stream, with equal answers, and measure them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.swoop.base import Base
from benchmarks.swoop.refill import Refill
from benchmarks.swoop.scase import Scase
from benchmarks.swoop.window import Operator, Swoop
from correlation.topk.similarities import JACCARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from correlation.topk.join.join import Pairs
    from correlation.topk.join.state import Block
    from correlation.topk.similarities import Similarity

SWOOP, REFILL, SCASE, MERGING, BASE = "swoop", "refill", "scase", "scase, merge", "base"
# Operators that pair a new set with every valid set.
SLOW = (SCASE, MERGING, BASE)
# Above this window, `base` has more pairs than fit into memory.
BASE_LIMIT = 10_000
# Number of times that the skyband is recomputed for a measurement.
_RECOMPUTED = 100


class Shape(NamedTuple):
    """Parameters of a join.

    Attributes
    ----------
    window : int
        Number of valid sets.
    k : int
        Length of the list.
    similarity : Similarity
        The similarity.
    """

    window: int
    k: int
    similarity: Similarity = JACCARD


class Plan(NamedTuple):
    """Sets inserted after the window has been filled in bulk.

    Attributes
    ----------
    few, many : int
        Number of sets of a piece for slow operators and for the others.
    pieces : int
        Number of pieces of either size; all operators insert the pieces of few sets first.
    """

    few: int
    many: int
    pieces: int

    @property
    def sets(self) -> int:
        """Number of sets of all pieces."""
        return self.pieces * (self.few + self.many)


class Measured(NamedTuple):
    """Result of a run.

    Attributes
    ----------
    rate : float
        Sets per second of processor time, the median of the pieces.
    sets : int
        Number of sets measured.
    stock, nbytes : int
        Number of pairs kept at the end, and their memory.
    work : ndarray of float64, shape (3,)
        Sets met, sets whose overlap was counted, and candidates, per set; zeros if not counted.
    skyband_us : float
        Processor time to recompute the skyband once, for `scase`, in µs; 0 for the others.
    """

    rate: float
    sets: int
    stock: int
    nbytes: int
    work: NDArray[np.float64]
    skyband_us: float


class DifferentAnswersError(Exception):
    """Two operators have different lists, so their times are meaningless."""


def make_operator(name: str, stream: Block, shape: Shape) -> Operator:
    """Return an operator.

    Parameters
    ----------
    name : str
        SWOOP, REFILL, SCASE, MERGING or BASE.
    stream : Block
        The stream, one set per µs.
    shape : Shape
        What is joined.
    """
    window_us = shape.window - 1
    if name == MERGING:
        return Scase(stream, shape.k, window_us, shape.similarity, merging=True)
    kinds: dict[str, type[Operator]] = {it.name: it for it in (Swoop, Refill, Scase, Base)}
    return kinds[name](stream, shape.k, window_us, shape.similarity)


def choose_operators(window: int) -> list[str]:
    """Return the operators that run at a window."""
    names = [SWOOP, REFILL, SCASE, MERGING]
    return [*names, BASE] if window <= BASE_LIMIT else names


def measure(
    makers: Mapping[str, Callable[[], Operator]], shape: Shape, plan: Plan
) -> dict[str, Measured]:
    """Run operators one after the other.

    Parameters
    ----------
    makers : mapping of str to callable
        The operators, made when it is their turn. The answers of all are compared with those of the
        first one after every piece.
    shape : Shape
        What is joined.
    plan : Plan
        Sets to insert.

    Raises
    ------
    DifferentAnswersError
        Two operators have different lists.
    """
    answers: list[Pairs] = []
    return {name: _run(name, make(), shape, plan, answers) for name, make in makers.items()}


def _run(name: str, operator: Operator, shape: Shape, plan: Plan, answers: list[Pairs]) -> Measured:
    operator.fill(shape.window)
    is_first = not answers
    rates: list[float] = []
    work = _work(operator)
    sizes = [plan.few] * plan.pieces + ([] if name in SLOW else [plan.many] * plan.pieces)
    for place, size in enumerate(sizes):
        if place == plan.pieces:
            # Fast operators are measured by larger pieces.
            rates, work = [], _work(operator)
        begin = time.process_time()
        operator.insert(size)
        rates.append(size / max(time.process_time() - begin, 1e-9))
        if is_first:
            answers.append(operator.list_pairs())
        else:
            check_answers(operator.list_pairs(), answers[place], f"{name}, piece {place}")
    sets = sizes[-1] * plan.pieces
    return Measured(
        float(np.median(rates)),
        sets,
        operator.stock_size,
        operator.nbytes,
        (_work(operator) - work) / sets,
        _recompute_us(operator) if isinstance(operator, Scase) else 0.0,
    )


def _recompute_us(operator: Scase) -> float:
    begin = time.process_time()
    for _ in range(_RECOMPUTED):
        operator.recompute()
    return (time.process_time() - begin) / _RECOMPUTED * 1e6


def _work(operator: Operator) -> NDArray[np.float64]:
    return (operator.join.work if isinstance(operator, Swoop) else np.zeros(3)).astype(np.float64)


def check_answers(found: Pairs, wanted: Pairs, what: str) -> None:
    """Refuse a list that differs.

    Raises
    ------
    DifferentAnswersError
        The lists differ.
    """
    if not all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True)):
        raise DifferentAnswersError(what)


def measure_latency(
    makers: Mapping[str, Callable[[], Operator]], shape: Shape, counts: Mapping[str, Sequence[int]]
) -> dict[str, NDArray[np.float64]]:
    """Measure the time of single calls.

    Parameters
    ----------
    makers : mapping of str to callable
        The operators.
    shape : Shape
        What is joined.
    counts : mapping of str to sequence of int
        For each operator, the number of sets of each call; one set is inserted before.

    Returns
    -------
    mapping of str to ndarray of float64
        Wall times of the calls, in µs.

    Raises
    ------
    DifferentAnswersError
        Two operators have different lists after the same number of sets.
    """
    answers: dict[int, Pairs] = {}
    times = {}
    for name, make in makers.items():
        operator = make()
        operator.fill(shape.window)
        # The first call of a kernel loads it.
        operator.insert(1)
        found = np.empty(len(counts[name]))
        for place, count in enumerate(counts[name]):
            begin = time.perf_counter_ns()
            operator.insert(count)
            found[place] = (time.perf_counter_ns() - begin) / 1e3
            pairs = operator.list_pairs()
            check_answers(pairs, answers.setdefault(operator.next, pairs), name)
        times[name] = found
    return times
