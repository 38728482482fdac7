"""The JSON and the tables in docs/ match the input and output of the software."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import TypeAdapter

from correlation.buffers.events import Events
from correlation.engine.advice import advise
from correlation.engine.contract import ContractFacts
from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_from_record
from correlation.engine.program import Block, Control, Outcome, Program
from correlation.engine.progress import Progress
from correlation.event_query.alarm_format import KIND as EVENT_QUERY
from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document, topics_of
from correlation.parsing.event_reader import MappedEvent, compile_mapping
from correlation.reasons import Reason
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from correlation.timing.drawing import draw_pair
from correlation.topk.change_format import KIND as TOPK
from service.api.explain import ExplainRequest
from service.api.stream_status import StreamReport
from service.api.validation import ValidationRequest
from service.checks import checked_stream
from service.definitions import DEFINITIONS
from service.documents.fields import Document
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from tests.oracle.intervals import Window, is_satisfied, probability

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAIR = re.compile(
    r"^\| \[([\d.]+), ([\d.]+)\] \| \[([\d.]+), ([\d.]+)\] \| ([\d.]+) \| (yes|no) \|$",
    re.MULTILINE,
)
STREAMS: TypeAdapter[Document] = TypeAdapter(StreamDocument)
CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
# Later than every event of the examples.
ARRIVAL_US = 2_000_000_000_000_000
S = 1_000_000
NOON_US = 1_767_268_800 * S


class Example(NamedTuple):
    """A block of JSON: its place, its kind and its content."""

    file: str
    line: int
    kind: str
    text: str

    @property
    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """The parsed block, with every number exact."""
        return json.loads(self.text, parse_float=Decimal)


def _read(file: str) -> str:
    return (DOCS / file).read_text(encoding="utf-8")


def _examples(file: str) -> list[Example]:
    text = _read(file)
    return [
        Example(file, text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2))
        for found in BLOCK.finditer(text)
    ]


def _id(example: Example) -> str:
    return f"{example.file}:{example.line}"


def _templates() -> dict[str, Resource]:
    """Templates of the page about streams, under the names in the text above them."""
    text = _read("streams.md")
    found = {}
    for block in BLOCK.finditer(text):
        if block.group(1) == "template":
            value = json.loads(block.group(2), parse_float=Decimal)
            name = re.findall(r"PUT /v1/templates/(\w+)", text[: block.start()])[-1]
            document = TemplateDocument.model_validate(value).normalised()
            found[name] = Resource("template", name, 1, 0, document)
    return found


def _stream(example: Example) -> Stream:
    document = STREAMS.validate_python(example.value).normalised()
    return checked_stream("example", document, _templates())


def _mapped() -> list[tuple[Example, Example, Example]]:
    """Streams, each with an event of it and what that becomes."""
    found, stream, event = [], None, None
    for example in _examples("streams.md"):
        if example.kind == "stream":
            stream = example
        elif example.kind == "event":
            event = example
        elif example.kind == "becomes" and stream and event:
            found.append((stream, event, example))
    return found


@pytest.mark.parametrize(
    ("stream", "event", "becomes"), _mapped(), ids=[_id(entry[1]) for entry in _mapped()]
)
def test_event_becomes_what_the_manual_says(
    stream: Example, event: Example, becomes: Example
) -> None:
    found = compile_mapping(_stream(stream))(
        json.loads(event.text), event.text.encode(), None, ARRIVAL_US
    )
    assert found == _canonical(becomes.text)


def _canonical(text: str) -> MappedEvent:
    """Read a canonical event."""
    tokens = Tokens(("tokens",))
    stream = Stream("canonical", "canonical", 2**45, 0, histograms=True, tokens=tokens)
    return compile_mapping(stream)(json.loads(text), text.encode(), None, ARRIVAL_US)


def test_every_kind_of_condition_has_its_example() -> None:
    kinds = {it.value["kind"] for it in _examples("conditions.md") if it.kind == "condition"}
    # These have pages of their own; see test_queries_document and test_topk_document.
    assert kinds == set(KINDS) - {EVENT_QUERY, TOPK}


class Pair(NamedTuple):
    """A row of a table of pairs, times in µs."""

    condition: dict[str, Any]
    a: tuple[int, int]
    b: tuple[int, int]
    probability: Fraction
    alarm: bool


def _pairs() -> list[Pair]:
    """Rows of the tables, each with the condition above it."""
    text = _read("conditions.md")
    blocks = [found for found in BLOCK.finditer(text) if found.group(1) == "condition"]
    pairs = []
    for row in PAIR.finditer(text):
        above = [found for found in blocks if found.start() < row.start()][-1]
        value = json.loads(above.group(2), parse_float=Decimal)
        document = CONDITIONS.validate_python(value).normalised()
        a1, a2, b1, b2 = (int(Decimal(row.group(place)) * 1_000_000) for place in range(1, 5))
        chance, alarm = Fraction(row.group(5)), row.group(6) == "yes"
        pairs.append(Pair(document, (a1, a2), (b1, b2), chance, alarm))
    return pairs


def _window(document: dict[str, Any]) -> Window:
    threshold = Fraction(document["threshold"])
    horizon = document.get("horizon_us", 0)
    if document["kind"] == "mutual_deadline":
        return (-document["window_us"], document["window_us"], None, None, threshold)
    if document["kind"] == "within":
        return (document["lower_us"], document["upper_us"], None, None, threshold)
    if document["kind"] == "deadline":
        return (None, document["deadline_us"], -horizon, None, threshold)
    return (document["delay_us"], None, None, horizon, threshold)


@pytest.mark.parametrize("pair", _pairs())
def test_pair_has_the_probability_and_the_verdict_of_the_manual(pair: Pair) -> None:
    window = _window(pair.condition)
    assert probability(pair.a, pair.b, window) == pair.probability
    assert is_satisfied(pair.a, pair.b, window) == pair.alarm
    assert len(_alarms(pair)) == pair.alarm


def _alarms(pair: Pair) -> list[dict[str, Any]]:
    """Return the alarms of the program for the one pair."""
    names = (pair.condition["a"], pair.condition["b"])
    streams = {name: Stream(name, name, 60_000_000, 60_000_000) for name in names}
    program = Program(streams, dict.fromkeys(names, 1))
    record = Resource("condition", "example", 1, 0, pair.condition).to_record()
    parts, progress = [], []
    for name, (earliest, latest) in zip(names, (pair.a, pair.b), strict=True):
        row = (b"k", name.encode(), earliest, latest, 0, 0, latest)
        parts.append(Events.from_rows(name, [row]))
        progress.append(Progress(name, 0, 1, latest))
    control = Control(0, b"condition/example", record)
    return _read_alarms(program.advance(Block([control], parts, progress), lambda: ARRIVAL_US))


def _read_alarms(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        json.loads(found.value or b"")
        for result in outcome.results
        for found in result.records(outcome.detected_at_us)
    ]


def test_alarm_of_the_manual_is_what_the_program_gives() -> None:
    (shown,) = [json.loads(it.text) for it in _examples("conditions.md") if it.kind == "alarm"]
    document = {
        "kind": shown["kind"],
        "a": shown["a"]["stream"],
        "b": shown["b"]["stream"],
        "window_us": 1_000_000,
        "threshold": "0.6",
    }
    a, b = ((shown[side]["earliest"], shown[side]["latest"]) for side in "ab")
    (alarm,) = _alarms(Pair(document, a, b, Fraction(0), alarm=True))
    assert set(alarm) == set(shown)
    for side in "ab":
        assert set(alarm[side]) == set(shown[side])
        assert alarm[side]["earliest"] == shown[side]["earliest"]
    same = ("v", "version", "kind", "threshold", "probability", "decided_by", "late")
    assert {name: alarm[name] for name in same} == {name: shown[name] for name in same}
    assert len(alarm["alarm_id"]) == len(shown["alarm_id"])


def test_emit_reports_what_the_manual_says() -> None:
    text = _read("conditions.md")
    line = r"^- {}: (.*)$"
    event = re.compile(r"`(\w+)` \[(-?\d+), (-?\d+)\]")
    rows = {
        stream: [
            (b"k", name.encode(), int(low) * 1_000_000, int(high) * 1_000_000, 0, offset, 0)
            for offset, (name, low, high) in enumerate(event.findall(shown.group(1)))
        ]
        for stream in "AB"
        if (shown := re.search(line.format(stream), text, re.MULTILINE))
    }
    expected = re.findall(
        r"^\| `(pairs|best|unmatched)`(?: \(default\))? \| ([^|]+) \|", text, re.MULTILINE
    )
    assert [mode for mode, _ in expected] == ["pairs", "best", "unmatched"]
    for mode, reported in expected:
        program = Program({n: Stream(n, n, 60_000_000, 60_000_000) for n in "ab"}, {"a": 1, "b": 1})
        ends = {"kind": "within", "lower_us": 0, "upper_us": 30_000_000}
        document = {**ends, "a": "a", "b": "b", "threshold": "0.9", "emit": mode}
        record = Resource("condition", "example", 1, 0, document).to_record()
        parts = [Events.from_rows(name.lower(), columns) for name, columns in rows.items()]
        closed = [Heartbeat(name, None, CLOSED, None) for name in "ab"]
        control = Control(0, b"condition/example", record)
        block = Block([control], parts, heartbeats=closed)
        alarms = _read_alarms(program.advance(block, lambda: ARRIVAL_US))
        found = sorted((it["a"]["id"], it["b"] and it["b"]["id"]) for it in alarms)
        assert ", ".join(" + ".join(name for name in pair if name) for pair in found) == reported


def test_unmatched_alarm_of_the_manual_is_what_the_program_gives() -> None:
    (shown,) = [json.loads(it.text) for it in _examples("conditions.md") if it.kind == "unmatched"]
    a = shown["a"]
    document = {
        "kind": shown["kind"],
        "a": a["stream"],
        "b": "payment",
        "lower_us": 0,
        "upper_us": 600_000_000,
        "threshold": "0.9",
        "emit": "unmatched",
    }
    names = (a["stream"], "payment")
    program = Program({name: Stream(name, name, 60_000_000, 0) for name in names}, {})
    row = (a["key"].encode(), a["id"].encode(), a["earliest"], a["latest"], 0, 0, a["latest"])
    record = Resource("condition", shown["condition"], 1, 0, document).to_record()
    control = Control(0, b"condition/unpaid", record)
    closed = [Heartbeat("payment", None, CLOSED, None)]
    block = Block([control], [Events.from_rows(a["stream"], [row])], heartbeats=closed)
    (alarm,) = _read_alarms(program.advance(block, lambda: shown["detected_at"]))
    assert {**alarm, "alarm_id": ""} == {**shown, "alarm_id": ""}
    assert len(alarm["alarm_id"]) == len(shown["alarm_id"])


def test_validation_example_is_a_request() -> None:
    (example,) = [it for it in _examples("conditions.md") if it.kind == "validate"]
    request = ValidationRequest.model_validate(example.value)
    document = CONDITIONS.validate_python(request.condition).normalised()
    assert condition_from_document("example", 1, document).kind == "mutual_deadline"


def test_explanation_of_the_manual_is_what_the_software_gives() -> None:
    text = _read("conditions.md")
    (example,) = [it for it in _examples("conditions.md") if it.kind == "explain"]
    request = ExplainRequest.model_validate(json.loads(example.text))
    asked = request.__pydantic_extra__
    answer = _explain(asked["a"], asked["b"])
    assert (answer["verdict"], answer["probability_exact"]) == ("satisfied", "5/8")
    assert '"5/8"' in text
    # The picture above it: geo-8 of getting-started.md.
    geo_8 = {"id": "geo-8", "key": "north", "earliest": NOON_US - 4 * S, "latest": NOON_US - 2 * S}
    far = _explain(asked["a"], geo_8)
    shown = text.split("NOT SATISFIED", 1)[1]
    for line in [*draw_pair(far), *(step["step"] for step in far["steps"] if step["passed"])]:
        assert line in shown
    assert far["explanation"] in " ".join(shown.split())
    rows = set(re.findall(r"^\| `(\w+)` \|", shown, re.MULTILINE))
    assert {step["step"] for step in far["steps"]} | {"same_event"} <= rows
    named = set(re.findall(r"`(\w+)`", shown))
    assert named & set(answer) >= {"probability", "s_us", "window", "reach", "regions", "notes"}


def _explain(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Explain a pair of the streams and the condition of getting-started.md."""
    streams = {
        name: Stream(name, name, longest, 10 * S)
        for name, longest in (("acoustic", S // 2), ("seismic", 2 * S))
    }
    document = {"kind": "mutual_deadline", "a": "acoustic", "b": "seismic", "window_us": S}
    condition = condition_from_document("footsteps", 1, document | {"threshold": "0.6"})
    given = {"a": GivenRecord(a), "b": GivenRecord(b)}
    return KINDS[condition.kind].explain(condition, streams, given)


@pytest.mark.parametrize(
    "example", [it for it in _examples("operations.md") if it.kind == "heartbeat"], ids=_id
)
def test_heartbeat_example_is_a_heartbeat(example: Example) -> None:
    assert heartbeat_from_record(example.value).stream == "departures"


def test_status_example_is_what_the_service_says_of_such_a_stream() -> None:
    (example,) = [it for it in _examples("operations.md") if it.kind == "status"]
    shown = StreamReport.model_validate(json.loads(example.text))
    declared = {
        name: shown.declared[name] for name in ("min_uncertainty_us", "max_uncertainty_us", "clock")
    }
    stream = Stream("s", "s", max_delay_us=shown.declared["max_delay_us"], **declared)
    lengths, delays = shown.seen.lengths, shown.seen.delays
    assert lengths is not None
    assert delays is not None
    facts = ContractFacts.of_events(
        stream,
        np.linspace(lengths.min_us, lengths.max_us, 10_000).astype(np.int64),
        np.append(np.linspace(delays.min_us, 400_000, 9_999), delays.max_us).astype(np.int64),
        0,
    )
    assert list(advise(stream, facts)) == shown.advice
    assert facts.lengths is not None
    found = facts.lengths.quantile(0.99)
    assert found.at_most_us == lengths.quantiles[0].at_most_us
    assert found.estimate_us == pytest.approx(lengths.quantiles[0].estimate_us, rel=0.01)


def test_operations_explain_every_reason() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", _read("operations.md"), re.MULTILINE)
    assert sorted(found for found in explained if found in set(Reason)) == sorted(Reason)
    assert set(explained) - set(Reason) <= {"stream", "partition", "read_up_to", "offset"} | {
        name for name in explained if name.startswith(("Coincide", "coincide_"))
    }


def test_operations_list_every_metric() -> None:
    listed = set(re.findall(r"`coincide_(\w+)`", _read("operations.md")))
    assert listed == set(DEFINITIONS)


def test_operations_list_every_topic() -> None:
    assert set(
        re.findall(r"^\| `(coincide\.\S+)` \|", _read("operations.md"), re.MULTILINE)
    ) == set(topics_of("coincide").all())


def test_a_minute_of_two_events_is_narrow_for_a_second() -> None:
    assert "with a probability of 3 % at best" in _read("conditions.md")
    minute = 60_000_000
    best = probability((0, minute), (0, minute), (-1_000_000, 1_000_000, None, None, Fraction(1)))
    assert round(best * 100) == 3
