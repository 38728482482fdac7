"""docs/topk.md shows the lists, records and errors of the software."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter
from rich.console import Console

from cli.client.list_tables import ShownLists
from cli.client.resources import read_resources
from cli.main import main
from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.program import Block, Program
from correlation.engine.progress import Progress
from correlation.errors import CorrelationError
from correlation.kinds import condition_from_document
from correlation.operators import Condition
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.topk import similarities
from correlation.topk.condition import KIND
from correlation.topk.kind import TOPK_KIND
from correlation.topk.similarities import ENTRY_POINTS, SIMILARITIES
from service.documents.fields import Document
from service.documents.models import ConditionDocument, StreamDocument
from service.registry import checked_stream
from tests.support.slots import control_record

PAGE = (Path(__file__).parents[3] / "docs" / "topk.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```([\w .]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
ROW = re.compile(r"^\| (\d\d:\d\d) \| (\w*) ?\| ([\w, ]*?) ?\| (.*?) \| (.*?) \| (\d+) \|$", re.MULTILINE)
CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
SIGNS = {"entered": "+", "left": "-", "moved": "~"}
S = 1_000_000


def _block(mark: str) -> str:
    (found,) = [text for name, text in BLOCKS if name == mark]
    return str(found)


def _time_us(clock: str) -> int:
    return int(datetime.fromisoformat(f"2026-01-01T{clock}:00+00:00").timestamp()) * S


def _named(item: Mapping[str, Any]) -> str:
    return f"{item['older']['id']} {item['younger']['id']}"


@dataclass
class Example:
    """The example of the page, evaluated time by time."""

    program: Program = field(init=False)
    changes: list[dict[str, Any]] = field(default_factory=list)
    present: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        stream, condition = yaml.safe_load_all(_block("yaml resources"))
        self.max_delay_us, name = 10 * S, condition.pop("name")
        document = StreamDocument.model_validate(
            {name: it for name, it in stream.items() if name not in {"kind", "name"}}
        )
        streams = {"alerts": checked_stream("alerts", document.normalised(), {})}
        assert streams["alerts"].max_delay_us == self.max_delay_us
        self.program = Program(streams, {"alerts": 1})
        normalised = CONDITIONS.validate_python(condition).normalised()
        self._advance(Block([control_record(0, name, normalised)], [], []))

    def reach(self, clock: str, name: str, tokens: list[str]) -> dict[str, Any]:
        """Add a set, if it has a name, at a time; return the gauges at this time."""
        time_us, parts, progress = _time_us(clock), [], []
        if name:
            rows = [(b"", name.encode(), time_us, time_us, 0, 0, time_us)]
            sets = SetsColumn.from_list([sorted(it.encode() for it in tokens)])
            events = Events.from_rows("alerts", rows)
            parts.append(replace(events, columns={TOKENS_COLUMN: sets}))
            progress.append(Progress("alerts", 0, 1, time_us))
        beat = Heartbeat("alerts", None, time_us + 1 + self.max_delay_us, None)
        return self._advance(Block([], parts, progress, heartbeats=[beat]))

    def _advance(self, block: Block) -> dict[str, Any]:
        self.changes = []
        outcome = self.program.advance(block, lambda: _time_us("10:20"))
        for result in outcome.results:
            for record in result.records(outcome.detected_at_us):
                found = None if record.value is None else json.loads(record.value)
                if found is not None and "change" in found:
                    self.changes.append(found)
                else:
                    assert record.key == b"alike"
                    self.present = found
        return {name: value for name, _, value in outcome.metrics["gauges"]}


def _run() -> Iterator[tuple[tuple[str, ...], str, Example]]:
    """Yield each row of the table, its clock and the example after it."""
    example = Example()
    for row in ROW.findall(PAGE):
        clock, name, tokens = row[:3]
        gauges = example.reach(clock, name, tokens.split(", "))
        changes = ", ".join(f"{SIGNS[it['change']]}{it['rank']} {_named(it)}" for it in example.changes)
        items = () if example.present is None else example.present["items"]
        listed = ", ".join(f"{_named(it)} ({it['similarity']:.4g})" for it in items)
        found = (clock, name, tokens, changes, listed, str(gauges["topk_stock_pairs"]))
        yield row, "| " + " | ".join(found) + " |", example


if __name__ == "__main__":
    for _, shown, example in _run():
        print(shown)
        for it in example.changes:
            print("   ", json.dumps(it))
        print("   ", json.dumps(example.present))
