"""The records in docs/factored.md match the program's output, and its reader reads them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Outcome, Program
from correlation.resources.attributes import Attribute
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.timing.alarm_format import FACTORED_TYPE
from service.documents.fields import Document
from service.documents.models import ConditionDocument
from tests.support.factored import expand
from tests.support.filters import DECLARED, draw_attributes
from tests.support.slots import CONDITIONS, Slot, control_record, draw_arrivals, make_block

PAGE = (Path(__file__).parents[3] / "docs" / "factored.md").read_text(encoding="utf-8")
BLOCKS = {
    found.group(1): found.group(2)
    for found in re.finditer(r"^```\w+ (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}
STREAMS = {
    name: Stream(name, name, longest, 10_000_000, clock="replay")
    for name, longest in (("acoustic", 500_000), ("seismic", 2_000_000))
}
MODEL: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
# Of the targets: those without a pair with mic-1 are before, between and after the pairs.
TOO_EARLY, TOO_SHORT = ("geo-2", 300_000, 1_100_000), ("geo-9", 3_200_000, 3_300_000)

Reader = Callable[[dict[str, Any]], Iterator[dict[str, Any]]]


def events(stream: str, rows: list[tuple[str, int, int]]) -> Events:
    columns = enumerate(rows)
    return Events.from_rows(
        stream, [(b"north", name.encode(), low, high, 0, i, 0) for i, (name, low, high) in columns]
    )


def written(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        json.loads(record.value or b"")
        for result in outcome.results
        for record in result.records(outcome.detected_at_us)
    ]


@pytest.fixture
def reader() -> Reader:
    """Return the page's reader, with tables of its own."""
    names: dict[str, Any] = {}
    exec(compile(BLOCKS["expand"], "docs/factored.md", "exec"), names)  # noqa: S102 - our own page
    found: Reader = names["alarms"]
    return found


def test_records_of_the_manual_are_what_the_program_writes() -> None:
    targets, base = json.loads(BLOCKS["targets"]), json.loads(BLOCKS["base"])
    origin = 1_767_225_600_000_000
    columns = zip(targets["ids"], targets["earliest"], targets["latest"], strict=True)
    others = [(name, origin + low, origin + high) for name, low, high in (TOO_EARLY, TOO_SHORT)]
    mine = [(base["a"]["id"], base["a"]["earliest"], base["a"]["latest"])]
    given = json.loads(BLOCKS["condition"], parse_float=Decimal)
    document = MODEL.validate_python(given).normalised()
    resource = Resource("condition", "footsteps", 1, 0, document)
    control = Control(0, resource.key, resource.to_record())
    block = Block([control], [events("acoustic", mine), events("seismic", [*columns, *others])])
    outcome = Program(STREAMS, dict.fromkeys(STREAMS, 1)).advance(
        block, lambda: base["detected_at"]
    )
    assert written(outcome) == [targets, base]
    assert [result.heading(0).headers["ce_type"] for result in outcome.results] == [FACTORED_TYPE]
    assert f"`{FACTORED_TYPE}`" in PAGE


def test_sentence_of_the_manual_is_what_the_records_say() -> None:
    records = [json.loads(BLOCKS[name]) for name in ("targets", "base")]
    alarms = list(expand(map(json.dumps, records)))
    places = [records[0]["ids"].index(alarm["b"]["id"]) for alarm in alarms]
    assert places == [1, 2, 0, 3, 5]
    assert "forms pairs with five targets: 1 and 2 (`certain`), 0 (the bitmap" in PAGE
    assert "and 3 and 5 (the bitmap `oA==`" in PAGE
    assert alarms[-1] == json.loads(BLOCKS["alarm"])


def test_every_field_of_the_records_is_explained() -> None:
    explained = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", PAGE, re.MULTILINE)))
    )
    fields = {*json.loads(BLOCKS["targets"]), *json.loads(BLOCKS["base"])}
    assert fields <= explained | {"v", "record"}


@pytest.mark.parametrize("name", sorted(n for n, it in CONDITIONS.items() if it["a"] != it["b"]))
@pytest.mark.parametrize("attributes", [(), DECLARED])
def test_reader_of_the_manual_reads_what_ours_reads(
    name: str, attributes: tuple[Attribute, ...], reader: Reader
) -> None:
    rng = random.Random(name)  # noqa: S311 - reproducible, no secret
    slot = Slot()
    slot.streams = {it: replace(old, attributes=attributes) for it, old in slot.streams.items()}
    slot.restart()
    arrivals = draw_arrivals(rng, 200)
    if attributes:
        arrivals = [replace(it, attributes=draw_attributes(rng)) for it in arrivals]
    controls = [control_record(0, name, {**CONDITIONS[name], "output": "factored"})]
    records = written(slot.advance(make_block(arrivals[:150], controls)))
    records += written(slot.advance(make_block(arrivals[150:], [])))
    found = [alarm for record in records for alarm in reader(record)]
    expected = list(expand(map(json.dumps, records)))
    assert len(found) == len(expected) > 20
    for mine, ours in zip(found, expected, strict=True):
        assert mine.pop("probability") == pytest.approx(ours.pop("probability"), abs=1e-9)
        assert mine == ours
