"""The schemas of records accept what is written and documented, and refuse anything else."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat, heartbeat_to_record
from correlation.kinds import KINDS
from correlation.reasons import Reason
from correlation.resources.records import Resource, stream_to_document, template_to_document
from correlation.resources.topics import Channel, Topics, error_headers, refusal_headers
from service.checks import checked_stream
from service.documents.fields import Document
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from spark_jobs.sink.refusals import Refused, shorten
from spark_jobs.worker.envelope import Record
from tests.support.records import built_in_checker

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKER = built_in_checker()
STREAMS: TypeAdapter[Document] = TypeAdapter(StreamDocument)
CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
CLOUD_EVENT = {
    "content-type": "application/json",
    "ce_specversion": "1.0",
    "ce_source": "/coincide/conditions/near",
    "ce_time": "2026-01-01T00:00:00+00:00",
    "ce_id": "a",
}
CANONICAL = {f"event_{it}" for it in ("interval", "time", "template", "histogram")}
# Examples of the documentation: their topic, and their possible types.
DOCUMENTED = {
    "alarm": ("alarms", {"pair_alarm"}),
    "unmatched": ("alarms", {"unmatched_alarm"}),
    "targets": ("alarms", {"factored_targets"}),
    "base": ("alarms", {"factored_base"}),
    "result": ("alarms", {"event_query_result"}),
    "change": ("topk", {"topk_change"}),
    "list": ("topk.current", {"topk_similarity_list"}),
    "heartbeat": ("heartbeats", {"heartbeat"}),
    "becomes": ("events", CANONICAL),
    # Streams may map records of any form.
    "event": ("events", {*CANONICAL, "event_mapped"}),
}
# Records of the topic of state, as the job writes them.
POSITION: dict[str, Any] = {
    "v": 1,
    "checkpoint": "0123456789abcdef",
    "slots": 4,
    "config_topic_id": "AAAAAAAAAAAAAAAAAAAAAA",
    "positions": {"p.config": {"0": 17}, "events-a": {"0": 0, "11": 5_000_000_000}},
    "program": {"watermarks": {"a": [7, None]}, "floors": [], "states": {"0": 3}},
}
TOTALS: dict[str, Any] = {
    "v": 1,
    "conditions": [["near", 3, {"kind": "mutual_deadline"}]],
    "set_aside": [["far", 9, None]],
    "totals": {"counters": [["alarms_total", {"condition": "near"}, 5]]},
}
MARK = {"v": 1, "group": "p.0f8fad5b-d9cb-469f-a165-70867728950e.2", "next_batch": 18}
SHARES = {
    **MARK,
    "query": "0f8fad5b",
    "checkpoint": "0123456789abcdef",
    "at": 1_700_000_000_000_000,
    "format": 2,
    "ahead": "",
    "shares": ["AAEC"],
}
MERGED = {**MARK, "merged": {"totals": {"counters": []}, "gauges": {"top": {"last": 0.5}}}}
STATES = {
    "slot_position": POSITION,
    "slot_totals": TOTALS,
    "batch_mark": MARK,
    "merged_totals": MERGED,
    "slot_shares": SHARES,
}
CLOSED_FORMS = [it for it, (topic, _) in DOCUMENTED.items() if topic != "events"]


def examples(*kinds: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of the examples of the documentation."""
    for path in sorted(DOCS.glob("*.md")):
        for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")):
            if kind in kinds:
                yield kind, text


RECORDS = list(examples(*DOCUMENTED))


def test_every_documented_form_has_an_example() -> None:
    assert {kind for kind, _ in RECORDS} == set(DOCUMENTED)


@pytest.mark.parametrize(("kind", "text"), RECORDS)
def test_example_of_the_documentation_has_its_type(kind: str, text: str) -> None:
    topic, names = DOCUMENTED[kind]
    assert CHECKER.find_type(topic, text.encode()) in names


def first(kind: str) -> dict[str, Any]:
    """Return the first example of a kind."""
    found: dict[str, Any] = json.loads(next(text for it, text in RECORDS if it == kind))
    return found


def mutations(value: dict[str, Any], *, is_map: bool = False) -> Iterator[dict[str, Any]]:
    """Yield objects with a changed type or an additional field, at any depth."""
    for name, it in value.items():
        yield {**value, name: "x" if isinstance(it, list) else []}
        if isinstance(it, dict):
            for inner in mutations(it, is_map=name == "attributes"):
                yield {**value, name: inner}
    if not is_map:
        yield {**value, "undocumented": 1}


@pytest.mark.parametrize("kind", CLOSED_FORMS)
def test_changed_records_are_refused(kind: str) -> None:
    topic, _ = DOCUMENTED[kind]
    for wrong in mutations(first(kind)):
        assert is_refused(topic, wrong), wrong


@pytest.mark.parametrize("kind", CLOSED_FORMS)
def test_records_without_a_required_field_are_refused(kind: str) -> None:
    topic, _ = DOCUMENTED[kind]
    value = first(kind)
    optional = {"probability", "certain", "probed", "partition", "offset"}
    for name in value.keys() - optional:
        assert is_refused(topic, {it: value[it] for it in value if it != name}), name


def is_refused(topic: str, value: object) -> bool:
    try:
        CHECKER.find_type(topic, json.dumps(value).encode())
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *STATES.items(),
        ("slot_position", {**POSITION, "config_topic_id": None, "positions": {}, "program": {}}),
        ("slot_totals", {**TOTALS, "conditions": [], "totals": {}}),
        ("slot_totals", {it: TOTALS[it] for it in TOTALS if it != "set_aside"}),
    ],
)
def test_state_of_a_slot_has_its_type(name: str, value: dict[str, Any]) -> None:
    assert CHECKER.find_type("state", json.dumps(value).encode(), {}) == name


@pytest.mark.parametrize("name", STATES)
def test_changed_state_of_a_slot_is_refused(name: str) -> None:
    value = STATES[name]
    # Without its totals, the record of merged results has the type of a mark.
    for field in value.keys() - {"set_aside", "merged"}:
        assert is_refused("state", {it: value[it] for it in value if it != field}), field
    for field, it in value.items():
        wrong: object = {} if isinstance(it, list) else []
        assert is_refused("state", {**value, field: wrong}), field
    assert is_refused("state", {**value, "undocumented": 1})
    for positions in ({"t": {"x": 1}}, {"t": {"0": -1}}, {"t": 1}):
        assert is_refused("state", {**value, "positions": positions})


def test_result_of_a_threshold_has_its_probability() -> None:
    result = first("result")
    assert not is_refused("alarms", {**result, "threshold": 0.5, "probability": 0.75})
    assert is_refused("alarms", {**result, "threshold": 0.5})
    assert is_refused("alarms", {**result, "threshold": 0, "probability": 0.75})


def test_results_need_the_headers_of_their_type() -> None:
    value = json.dumps(first("alarm")).encode()
    headers = {**CLOUD_EVENT, "ce_type": "coincide.alarm.v1"}
    assert CHECKER.find_type("alarms", value, headers) == "pair_alarm"
    for wrong in (
        {**headers, "ce_type": "coincide.topk.v1"},
        {**headers, "other": "x"},
        {name: it for name, it in headers.items() if name != "ce_id"},
    ):
        with pytest.raises(AssertionError, match="pair_alarm: "):
            CHECKER.find_type("alarms", value, wrong)


def templates() -> dict[str, Resource]:
    """Return the template of the documentation, under its name."""
    ((_, text),) = examples("template")
    document = TemplateDocument.model_validate(json.loads(text, parse_float=Decimal)).normalised()
    return {"geophone": Resource("template", "geophone", 1, 0, document)}


def config_type(found: Resource) -> str:
    return CHECKER.find_type("config", json.dumps(found.to_record()).encode(), {})


@pytest.mark.parametrize("text", [it for _, it in examples("stream")])
def test_streams_of_the_documentation_are_stored_as_described(text: str) -> None:
    document = STREAMS.validate_python(json.loads(text, parse_float=Decimal)).normalised()
    stream = checked_stream("example", document, templates())
    found = Resource("stream", "example", 3, 7, stream_to_document(stream))
    assert config_type(found) == "stream"
    wrong = {**found.to_record(), "document": {**found.document, "undocumented": None}}
    assert is_refused("config", wrong)


@pytest.mark.parametrize("text", [it for _, it in examples("condition")])
def test_conditions_of_the_documentation_are_stored_as_described(text: str) -> None:
    document = CONDITIONS.validate_python(json.loads(text, parse_float=Decimal)).normalised()
    found = Resource("condition", "example", 1, 7, document)
    assert config_type(found) == f"{document['kind']}_condition"
    assert is_refused("config", {**found.to_record(), "paused": None})


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_example_of_a_kind_is_stored_as_described(kind: Any) -> None:  # noqa: ANN401 - a kind
    document = CONDITIONS.validate_python(dict(kind.example)).normalised()
    found = Resource("condition", "example", 1, 7, document, paused=True)
    assert config_type(found) == f"{kind.name}_condition"


def test_templates_and_deletions_are_described() -> None:
    (template,) = templates().values()
    found = template_to_document(template.to_template())
    assert config_type(Resource("template", "geophone", 1, 0, found)) == "template"
    assert CHECKER.find_type("config", None, {"coincide.version": "3"}) == "deleted_resource"


@pytest.mark.parametrize("read_up_to", [0, -1, CLOSED, RESET])
def test_heartbeats_are_written_as_described(read_up_to: int) -> None:
    for partition, offset in ((None, None), (3, 17)):
        value = json.dumps(heartbeat_to_record(Heartbeat("s", partition, read_up_to, offset)))
        assert CHECKER.find_type("heartbeats", value.encode(), {}) == "heartbeat"


@pytest.mark.parametrize("reason", Reason)
def test_late_and_dead_letter_records_have_the_described_headers(reason: Reason) -> None:
    added = error_headers(reason, "why", "", "topic", 0, 17)
    headers = {"own": "x", **{name: it.decode() for name, it in added.items()}}
    assert CHECKER.find_type("dead-letter", b"\xff", headers) == "dead_letter"
    if reason == Reason.LATE:
        assert CHECKER.find_type("late", None, headers) == "late_event"
    else:
        with pytest.raises(AssertionError):
            CHECKER.find_type("late", None, headers)


def test_refused_result_has_the_described_headers() -> None:
    added = refusal_headers(Reason.OUTPUT_REFUSED, "why", "out")
    headers = CLOUD_EVENT | {name: it.decode() for name, it in added.items()}
    assert CHECKER.find_type("dead-letter", b"{}", headers) == "refused_result"


def test_values_that_exceed_every_limit_are_left_out_as_described() -> None:
    topics = Topics("p", (Channel("topk.current", compacted=True),))
    headers = [(name, it.encode()) for name, it in CLOUD_EVENT.items()]
    present = {**first("list"), "items": ["x" * 100_000]}
    records = [
        Record("p.alarms", b"k", b"x" * 100_000, [*headers, ("ce_type", b"coincide.alarm.v1")]),
        Record(
            "p.topk.current",
            b"alike",
            json.dumps(present).encode(),
            [*headers, ("ce_type", b"coincide.list.v1")],
        ),
    ]
    found = shorten(records, [Refused(*it[:3]) for it in records], topics)
    assert found is not None
    types = [
        CHECKER.find_type(
            it.topic.removeprefix("p."),
            it.value,
            {name: (value or b"").decode() for name, value in it.headers},
        )
        for it in found
    ]
    assert types == ["omitted_value", "refused_result", "topk_similarity_list_too_large"]
