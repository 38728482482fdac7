"""Arrivals with histograms, for slots and the job, and the results expected by the oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from correlation.engine.program import Program
from correlation.resources.histogram import Histogram
from correlation.resources.template import Template
from tests.oracle import histograms as oracle
from tests.support.histograms import told
from tests.support.slots import Arrival, Slot, judged_window, passes, rivals_of
from tests.unit.correlation.timing.histogram_strategies import described

TEMPLATES = {
    "x": [described((-12, -9, "0.5"), (-9, -2, "0"), (-2, 0, "0.5"))],
    "y": [described((-8, -4, "0.25"), (-4, 0, "0.75")), described((-3, -1, "0.8"), (-1, 0, "0.2"))],
}
# An event and its time.
Judged = tuple[Arrival, oracle.Histogram]
# Templates and intervals; events with own histograms in x; events with own histograms in x and y.
DECLARED = ("templates", "mixed", "own")


def own_histogram(rng: random.Random, length: int) -> Histogram:
    cut, mass = rng.randint(1, length - 1), rng.randint(1, 9)
    return described((-length, cut - length, f"0.{mass}"), (cut - length, 0, f"0.{10 - mass}"))


def give_shapes(rng: random.Random, arrivals: list[Arrival], declared: str) -> list[Arrival]:
    """Return arrivals of which two in three have a shape that their stream allows."""
    found = []
    for arrival in arrivals:
        length = arrival.latest - arrival.earliest
        shape = None
        if rng.random() < 2 / 3:
            if declared == "own" or (declared == "mixed" and arrival.stream == "x"):
                shape = own_histogram(rng, length) if length > 1 else None
            else:
                shape = rng.choice(TEMPLATES[arrival.stream])
        if shape is not None:
            arrival = replace(  # noqa: PLW2901 - the same arrival, with a shape
                arrival, shape=shape, earliest=arrival.latest - shape.length_us
            )
        found.append(arrival)
    return found


def histogram_slot(declared: str) -> Slot:
    slot = Slot()
    for name, stream in slot.streams.items():
        templates = tuple(Template(f"t{k}", it) for k, it in enumerate(TEMPLATES[name]))
        own = declared == "own" or (declared == "mixed" and name == "x")
        slot.streams[name] = replace(stream, templates=templates, histograms=own)
    slot.program = Program(slot.streams, slot.partitions)
    return slot


def expected_pairs(
    arrivals: Sequence[Arrival], document: dict[str, object]
) -> dict[tuple[str, str], Fraction]:
    window = judged_window(document)

    def is_pair(a: Judged, b: Judged) -> bool:
        passing = passes(a[0], document, "a") and passes(b[0], document, "b")
        return passing and oracle.is_satisfied(a[1], b[1], window)

    by_stream = {
        name: [(it, told(it.histogram)) for it in arrivals if it.stream == name] for name in "xy"
    }
    pairs = {}
    for a, time_a in by_stream[str(document["a"])]:
        for b, time_b in by_stream[str(document["b"])]:
            if a.key != b.key or a.id == b.id or not is_pair((a, time_a), (b, time_b)):
                continue
            if document["a"] == document["b"]:
                order_a, order_b = (a.latest, a.earliest, a.id), (b.latest, b.earliest, b.id)
                if order_a > order_b and is_pair((b, time_b), (a, time_a)):
                    continue
            pairs[a.id, b.id] = oracle.probability(time_a, time_b, window)
    return pairs


def _mean(histogram: oracle.Histogram) -> Fraction:
    return sum((p * (lo + hi) / 2 for lo, hi, p in histogram), Fraction(0))


def histogram_verdicts(
    arrivals: Sequence[Arrival], document: dict[str, object]
) -> dict[str, str | None]:
    """Find the best B of each A, or None."""
    window = judged_window(document)
    verdicts: dict[str, str | None] = {}
    for a in (it for it in arrivals if it.stream == document["a"] and passes(it, document, "a")):
        time_a = told(a.histogram)
        ranked = []
        for b in rivals_of(a, list(arrivals), document):
            time_b = told(b.histogram)
            if not oracle.is_satisfied(time_a, time_b, window):
                continue
            missing = -oracle.probability(time_a, time_b, window)
            distance = abs(_mean(time_b) - _mean(time_a))
            ranked.append((missing, distance, b.latest, b.earliest, b.id))
        verdicts[a.id] = min(ranked)[-1] if ranked else None
    return verdicts
