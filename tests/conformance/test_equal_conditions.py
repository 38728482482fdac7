"""Conditions with equal windows have one search, and the results that they have alone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.program import Program
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.operator import TimingOperator
from tests.support.filters import DECLARED, draw_attributes, draw_where
from tests.support.histogram_slots import expected_pairs, give_shapes, histogram_slot
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    draw_arrivals,
    judged_pairs,
    make_block,
    read_alarms,
)

if TYPE_CHECKING:
    import pytest

SEEDS = st.integers(0, 2**32)
NOT_JUDGED = {"algorithm", "output_topic", "report_probability"}
Document = dict[str, Any]


def draw_documents(rng: random.Random, algorithm: str) -> dict[str, Document]:
    """Draw conditions of which several are equal; others differ in one field."""
    found: dict[str, Document] = {}
    for name in rng.sample(sorted(CONDITIONS), 3):
        document = {**CONDITIONS[name], "algorithm": algorithm}
        where = draw_where(rng)
        filtered = document if where is None else document | {"where": where}
        other = {"simple": "indexed"}.get(algorithm, "simple")
        changes: list[Document] = [
            document,
            document | {"output_topic": "mine"},
            document | {"threshold": "0.2"},
            document | {"algorithm": other},
            filtered,
            filtered | {"report_probability": False},
        ]
        found |= {f"{name}-{number}": it for number, it in enumerate(changes)}
    return found


def pairs_by_condition(
    slot: Slot, rng: random.Random, arrivals: list[Arrival], documents: dict[str, Document]
) -> dict[str, set[tuple[str, str]]]:
    controls = [
        control_record(offset, name, document)
        for offset, (name, document) in enumerate(documents.items())
    ]
    alarms = read_alarms(slot.advance(make_block([], controls)))
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 25)
        taken, rest = rest[:size], rest[size:]
        alarms += read_alarms(slot.advance(make_block(taken, [])))
        if rng.random() < 0.3:
            slot.restart()
    found: dict[str, set[tuple[str, str]]] = {name: set() for name in documents}
    for alarm in alarms:
        pair = (alarm["a"]["id"], alarm["b"]["id"])
        assert pair not in found[alarm["condition"]]
        found[alarm["condition"]].add(pair)
    return found


@given(SEEDS, st.sampled_from(ALGORITHM_CHOICES))
def test_equal_and_other_conditions_find_the_judges_pairs(seed: int, algorithm: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    slot = Slot()
    slot.streams = {name: replace(it, attributes=DECLARED) for name, it in slot.streams.items()}
    slot.program = Program(slot.streams, slot.partitions)
    arrivals = [replace(it, attributes=draw_attributes(rng)) for it in draw_arrivals(rng, 60)]
    documents = draw_documents(rng, algorithm)
    found = pairs_by_condition(slot, rng, arrivals, documents)
    # The judge does not read the fields in which some of the conditions differ.
    expected: dict[str, set[tuple[str, str]]] = {}
    for name, document in documents.items():
        judged = {it: document[it] for it in document if it not in NOT_JUDGED}
        key = json.dumps(judged)
        if key not in expected:
            expected[key] = judged_pairs(arrivals, judged)
        assert found[name] == expected[key], name
    assert len(found) == len(documents)


@given(SEEDS)
def test_equal_conditions_on_histograms_find_the_judges_pairs(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    declared = rng.choice(["templates", "own", "mixed"])
    slot = histogram_slot(declared)
    arrivals = give_shapes(rng, draw_arrivals(rng, 40), declared)
    document = {**CONDITIONS[rng.choice(sorted(CONDITIONS))]}
    documents = {"one": document, "two": document, "three": document | {"threshold": "0.45"}}
    found = pairs_by_condition(slot, rng, arrivals, documents)
    one, three = ({*expected_pairs(arrivals, documents[it])} for it in ("one", "three"))
    assert found == {"one": one, "two": one, "three": three}


def test_equal_conditions_have_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Any] = []
    search = TimingOperator._search  # noqa: SLF001 - to count its calls

    def counted(operator: TimingOperator, given: Any) -> Any:  # noqa: ANN401 - passed on
        searches.append(given)
        return search(operator, given)

    monkeypatch.setattr(TimingOperator, "_search", counted)
    arrivals = draw_arrivals(random.Random(3), 80)  # noqa: S311 - no secret
    expected = judged_pairs(arrivals, CONDITIONS["near"])
    counts = []
    for count in (1, 5):
        documents = {f"near-{number}": CONDITIONS["near"] for number in range(count)}
        rng = random.Random(5)  # noqa: S311 - the same blocks
        found = pairs_by_condition(Slot(), rng, arrivals, documents)
        assert list(found.values()) == [expected] * count
        counts.append(len(searches))
        searches.clear()
    assert counts[0] == counts[1] > 0
