"""Conditions whose newest records are unreadable are not in force; the others continue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from correlation.engine.program import Block, Control, Program
from correlation.resources.records import Resource
from correlation.resources.streams import Stream

STREAMS = {"x": Stream("x", "t", max_uncertainty_us=1_000, max_delay_us=1_000)}
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "x", "window_us": 5, "threshold": "0.5"}
KEY = b"condition/c"
READABLE = Resource("condition", "c", 1, 0, PAIR).to_record()
OTHER = Control(0, b"condition/other", Resource("condition", "other", 1, 0, PAIR).to_record())


def states(program: Program, *controls: Control) -> dict[str, tuple[str, int]]:
    outcome = program.advance(Block(controls), lambda: 0)
    found = outcome.metrics["conditions"]
    return {name: (it["state"], it["config_offset"]) for name, it in found.items()}


def restored(program: Program, change: tuple[str, str] = ("", "")) -> Program:
    """Restart from the stored state, as if written by other software where it is changed."""
    snapshot = program.snapshot()
    manifest = json.loads(json.dumps(snapshot.manifest).replace(*change))
    return Program.restore(manifest, snapshot.added.__getitem__, STREAMS, {"x": 1})


@pytest.mark.parametrize("record", ["", [], {}, {"v": 1}, READABLE | {"name": "d"}, {"v": 2}])
@pytest.mark.parametrize("was_there", [False, True])
def test_condition_whose_record_cannot_be_read_is_not_in_force(
    record: Any,  # noqa: ANN401  any JSON
    *,
    was_there: bool,
) -> None:
    program = Program(STREAMS, {"x": 1})
    before = [Control(1, KEY, READABLE)] if was_there else []
    found = states(program, OTHER, *before, Control(2, KEY, record))
    assert found == {"other": ("running", 0), "c": ("unreadable", 2)}
    program = restored(program)
    assert states(program) == found
    assert states(program, Control(3, KEY, None)) == {"other": ("running", 0)}
    assert "set_aside" not in program.snapshot().manifest


def test_newer_record_puts_the_condition_in_force_again() -> None:
    program = Program(STREAMS, {"x": 1})
    found = states(program, Control(1, KEY, {}), Control(2, KEY, READABLE))
    assert found == {"c": ("running", 2)}


def test_software_that_can_read_the_record_puts_it_in_force_at_its_start() -> None:
    program = Program(STREAMS, {"x": 1})
    newer = READABLE | {"v": 2, "version": 77}
    assert states(program, OTHER, Control(2, KEY, newer))["c"] == ("unreadable", 2)
    upgraded = restored(program, ('"v": 2, "kind"', '"v": 1, "kind"'))
    assert states(upgraded) == {"other": ("running", 0), "c": ("running", 2)}


def test_slot_keeps_the_problem_of_a_record_that_cannot_be_read_not_its_content() -> None:
    program = Program(STREAMS, {"x": 1})
    long = READABLE | {"v": 0, "more": "content" * 10_000}
    records = [(long, "v: must be 1"), ("value is not valid JSON", "value is not valid JSON")]
    for offset, (record, problem) in enumerate(records):
        outcome = program.advance(Block([Control(offset, KEY, record)]), lambda: 0)
        assert outcome.metrics["conditions"]["c"]["detail"] == problem
        assert "content" not in json.dumps(program.snapshot().manifest)
        program = restored(program)
        again = program.advance(Block(), lambda: 0).metrics["conditions"]["c"]
        assert again["detail"] == problem
