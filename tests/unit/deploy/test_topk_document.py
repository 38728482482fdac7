"""docs/topk.md shows the lists, records and errors of the software."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter
from rich.console import Console

from cli.client.list_tables import ShownLists
from cli.client.resources import read_resources
from cli.demo.list_judge import ListJudge, listed_of
from cli.demo.messages import load_messages, message_events
from cli.demo.resources import ALIKE, LISTS, STREAMS
from cli.replay.options import EventFile, ReplayOptions
from cli.replay.run import run_replay
from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.condition_kind import Load
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.program import Block, Program
from correlation.engine.progress import Progress
from correlation.kinds import condition_from_document
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.topk.kind import TOPK_KIND
from correlation.topk.similarities import SIMILARITIES, Similarity
from service.api.validation import ValidationRequest
from service.checks import checked_stream
from service.documents.fields import Document
from service.documents.models import ConditionDocument, StreamDocument
from service.sampling import Sampler, SampleRequest
from service.settings import Settings
from tests.support.slots import control_record

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "topk.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```([\w .]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
ROW = re.compile(
    r"^\| (\d\d:\d\d) \| (\w*) ?\| ([\w, ]*?) ?\| (.*?) ?\| (.*?) ?\| (\d+) \|$", re.MULTILINE
)
ROWS: list[tuple[str, ...]] = ROW.findall(PAGE)
CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
SIGNS = {"entered": "+", "left": "-", "moved": "~"}
S = 1_000_000
# The records of the page are those of this time.
SHOWN = "10:11"


def _block(mark: str) -> str:
    (found,) = [text for name, text in BLOCKS if name == mark]
    return str(found)


def _time_us(clock: str) -> int:
    return int(datetime.fromisoformat(f"2026-01-01T{clock}:00+00:00").timestamp()) * S


def _pair(item: Mapping[str, Any]) -> str:
    return f"{item['older']['id']} {item['newer']['id']}"


@dataclass
class Example:
    """The example of the page: the changes of the last block, and the present list."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    present: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stream, condition = yaml.safe_load_all(_block("yaml resources"))
        name = stream.pop("name")
        del stream["kind"]
        declared = checked_stream(name, StreamDocument.model_validate(stream).normalised(), {})
        self._delay_us = declared.max_delay_us
        self._program = Program({name: declared}, {name: 1})
        name = condition.pop("name")
        control = control_record(0, name, CONDITIONS.validate_python(condition).normalised())
        self._advance(Block([control], [], []), 0)

    def reach(self, clock: str, name: str, tokens: str) -> dict[str, float]:
        """Add a set, if it has a name, at a time; return the gauges at this time."""
        time_us = _time_us(clock)
        parts, progress = [], []
        if name:
            events = Events.from_rows("alerts", [(b"", name.encode(), time_us, time_us, 0, 0, 0)])
            sets = SetsColumn.from_list([sorted(it.encode() for it in tokens.split(", "))])
            parts.append(replace(events, columns={TOKENS_COLUMN: sets}))
            progress.append(Progress("alerts", 0, 1, time_us))
        beat = Heartbeat("alerts", None, time_us + 1 + self._delay_us, None)
        return self._advance(Block([], parts, progress, heartbeats=[beat]), time_us)

    def _advance(self, block: Block, time_us: int) -> dict[str, float]:
        outcome = self._program.advance(block, lambda: time_us + self._delay_us)
        self.changes = []
        for result in outcome.results:
            for record in result.records(outcome.detected_at_us):
                found = json.loads(record.value or b"null")
                if "change" in found:
                    self.changes.append(found)
                else:
                    self.present = found
        return {name: value for name, _, value in outcome.metrics["gauges"]}


class Step(NamedTuple):
    """A row of the table as it must be, the changes, and the present list."""

    row: str
    changes: list[dict[str, Any]]
    present: dict[str, Any]


@pytest.fixture(scope="module")
def steps() -> dict[str, Step]:
    """Return the steps of the example by time."""
    example, found = Example(), {}
    for clock, name, tokens, *_ in ROWS:
        gauges = example.reach(clock, name, tokens)
        changes = [f"{SIGNS[it['change']]}{it['rank']} {_pair(it)}" for it in example.changes]
        items = example.present.get("items", ())
        listed = [f"{_pair(it)} ({it['similarity']:.4g})" for it in items]
        stock = f"{gauges['topk_stock_pairs']:g}"
        row = " | ".join((clock, name, tokens, ", ".join(changes), ", ".join(listed), stock))
        found[clock] = Step(re.sub(" +", " ", f"| {row} |"), example.changes, example.present)
    return found


def _rows() -> dict[str, str]:
    return {found.group(1): found.group() for found in ROW.finditer(PAGE)}


@pytest.mark.parametrize("clock", [row[0] for row in ROWS])
def test_changes_list_and_stock_are_those_of_the_page(
    clock: str, steps: Mapping[str, Step]
) -> None:
    assert steps[clock].row == _rows()[clock]


def test_page_has_a_row_for_every_kind_of_step() -> None:
    assert [name for _, name, *_ in ROWS] == ["a1", "a2", "a3", "a4", "a5", "", "a6", ""]


def test_records_of_the_page_are_written(steps: Mapping[str, Step]) -> None:
    step = steps[SHOWN]
    shown = json.loads(_block("json change"))
    assert shown == step.changes[-1]
    assert shown["reason"] == "expiry"
    assert json.loads(_block("json list")) == step.present
    assert TOPK_KIND.reader().claims(shown)


def test_fields_of_changes_are_explained() -> None:
    section = PAGE[PAGE.index("## Changes") : PAGE.index("## Present lists")]
    rows = "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))
    own = {"v", "kind", "condition", "version"}
    keyed = {"key", "distance"}
    assert set(re.findall(r"`(\w+)`", rows)) == {*json.loads(_block("json change"))} - own | keyed


def test_table_of_the_page_is_that_of_tail(steps: Mapping[str, Step]) -> None:
    lists = TOPK_KIND.lists
    assert lists is not None
    console = Console(file=StringIO(), width=100, highlight=False)
    with console.capture() as captured:
        console.print(ShownLists("alike", lists).take(steps[SHOWN].present))
    shown = [line.rstrip() for line in captured.get().splitlines()]
    assert shown == _block("text list").splitlines()


def test_fields_of_the_document_are_explained() -> None:
    section = PAGE[PAGE.index("## The condition") : PAGE.index("## Order of pairs")]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert named == {"kind", *(it.name for it in TOPK_KIND.fields)}


def test_condition_of_the_page_is_valid() -> None:
    document = json.loads(_block("json condition"), parse_float=Decimal)
    condition = condition_from_document("c", 1, CONDITIONS.validate_python(document).normalised())
    assert condition.streams == ("alerts", "tickets")


def test_similarities_are_explained() -> None:
    section = PAGE[PAGE.index("## Order of pairs") : PAGE.index("## Window")]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*SIMILARITIES]


def test_sample_of_the_page_is_that_of_the_example() -> None:
    request = ValidationRequest.model_validate_json(_block("json validate"))
    stream, _ = yaml.safe_load_all(_block("yaml resources"))
    del stream["kind"]
    name = stream.pop("name")
    declared = checked_stream(name, StreamDocument.model_validate(stream).normalised(), {})
    document = CONDITIONS.validate_python(request.condition).normalised()
    condition = condition_from_document("alike", 1, document)
    asked = SampleRequest(request.sample, 1)
    sampler = Sampler(Settings())
    answer = sampler.derive(TOPK_KIND, condition, {name: declared}, Load({}), asked)
    shown = json.loads(_block("json sample"))
    assert answer.sample == shown
    # The records are those of the table.
    assert request.sample is not None
    given = [
        (it["id"], it["at"][11:16], ", ".join(it["tags"])) for it in _objects(request.sample[name])
    ]
    assert given == [(it[1], it[0], it[2]) for it in ROWS if it[1]]
    section = PAGE[PAGE.index("## Sizing") : PAGE.index("## Limits")]
    rows = re.findall(r"^\| (`\w+`.*?) \|", section, re.MULTILINE)
    explained = set(re.findall(r"`(\w+)`", "".join(rows)))
    parts = {*shown, *shown["trial"], *shown["expected"]}
    assert explained - {"last_distance"} == parts


def _objects(records: Sequence[object]) -> list[dict[str, Any]]:
    return [it for it in records if isinstance(it, dict)]


def test_resources_of_the_page_can_be_applied(tmp_path: Path) -> None:
    file = tmp_path / "alike.yaml"
    file.write_text(_block("yaml resources"), encoding="utf-8")
    assert [(it.kind, it.name) for it in read_resources([file])] == [
        ("stream", "alerts"),
        ("condition", "alike"),
    ]


def test_registered_similarity_of_the_page_is_exact() -> None:
    namespace: dict[str, Any] = {}
    exec(_block("python similarity"), namespace)  # noqa: S102 - text of this repository
    found: Similarity = namespace["BRAUN_BLANQUET"]
    shapes = [(o, r, s) for r in range(1, 9) for s in range(1, 9) for o in range(1, min(r, s) + 1)]
    wanted = {it: Fraction(it[0], max(it[1:])) for it in shapes}
    keys = {it: found.key(*it) for it in shapes}
    assert {keys[it]: value for it, value in wanted.items()} == {
        math.floor(value * 2**54): value for value in wanted.values()
    }
    half = found.minimum_key(Fraction(1, 2))
    assert {it for it in shapes if keys[it] >= half} == {
        it for it in shapes if wanted[it] >= Fraction(1, 2)
    }


def test_conditions_can_name_the_registered_similarity_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "my_similarities.py").write_text(_block("python similarity"), encoding="utf-8")
    package = tmp_path / "my_similarities-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-similarities\nVersion: 1\n")
    group, entry = re.findall(r'"(.*)"', _block("toml"))
    assert _block("toml").startswith("[project.entry-points.")
    (package / "entry_points.txt").write_text(f"[{group}]\nbraun_blanquet = {entry}\n")
    resources = tmp_path / "alike.yaml"
    alike = _block("yaml resources").replace("k: 2\n", "k: 10\n").replace("10min", "1h")
    resources.write_text(f"{alike}similarity: braun_blanquet\n", encoding="utf-8")
    given = tmp_path / "alerts.jsonl"
    events = [
        {"id": name, "at": f"2026-01-01T{clock}:00Z", "tags": tokens.split(", ")}
        for clock, name, tokens, *_ in ROWS
        if name
    ]
    given.write_text("".join(f"{json.dumps(it)}\n" for it in events), encoding="utf-8")
    call = ["replay", "-f", str(resources), "--events", f"alerts={given}"]
    ran = subprocess.run(  # noqa: S603 - Python with text of this repository
        [sys.executable, "-c", f"from cli.main import main; main({call})"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        check=True,
        capture_output=True,
        text=True,
    )
    changes = map(json.loads, ran.stdout.splitlines())
    # Jaccard is 2/4.
    assert {_pair(it): it["similarity"] for it in changes}["a1 a2"] == 2 / 3


def test_list_of_the_demo_is_shown(tmp_path: Path) -> None:
    section = PAGE[PAGE.index("## An example on real messages") : PAGE.index("## Limits")]
    assert json.loads(_block("json demo")) == LISTS[ALIKE]
    messages = load_messages(20_000)
    texts = {it.id: it.text for it in messages}
    assert (
        f"20,000 messages of {len({it.conversation for it in messages})} conversations" in section
    )
    end_us = int(datetime.fromisoformat("2018-04-21T22:00:00+00:00").timestamp()) * S
    stored = CONDITIONS.validate_python(LISTS[ALIKE]).normalised()
    chosen = [
        it
        for it in message_events(messages)
        if end_us - stored["window_us"] <= it.latest_us <= end_us
    ]
    listed = ListJudge(stored, chosen).list_at(end_us)
    rows = [f"| {it.similarity:.3g} | {texts[it.older]} | {texts[it.newer]} |" for it in listed]
    assert len(rows) == stored["k"]
    assert "\n".join(rows) in section
    given, resources = tmp_path / "messages.jsonl", tmp_path / "resources.yaml"
    given.write_bytes(b"\n".join(it.value for it in chosen))
    stream = {"kind": "stream", "name": "messages", **STREAMS["messages"]}
    documents = stream, {"name": ALIKE, **LISTS[ALIKE]}
    resources.write_text("\n---\n".join(map(json.dumps, documents)), encoding="utf-8")
    files = (EventFile("messages", 0, given, "jsonl"),)
    changes = tmp_path / "changes.jsonl"
    options = ReplayOptions((resources,), files, processes=1, alarms=changes)
    report = run_replay(options, Console(stderr=True))
    (present,) = report["conditions"][ALIKE]["lists"]
    assert [listed_of(it) for it in present["items"]] == listed


def test_numbers_of_the_demo_are_those_of_its_messages() -> None:
    records = [json.loads(it.value) for it in message_events(load_messages(20_000))]
    sent = np.array([it["sent"] for it in records if it["words"] >= 8 and not it["repeated"]])
    earlier = np.arange(len(sent)) - np.searchsorted(sent, sent - 24 * 60 * 60)
    assert f"each of the {len(sent):,} messages" in PAGE
    assert f"\n{earlier.sum():,} pairs, of which" in PAGE
