"""Every query of docs/queries.md has the results, the error or the plan that the page shows."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from cli.client.resources import read_resources
from cli.demo.data import load_events
from cli.demo.judge import judge_grounded
from cli.demo.resources import GROUNDED, QUERIES
from cli.main import main
from correlation.errors import InvalidFieldError
from correlation.event_query.alarm_format import CE_TYPE
from correlation.event_query.building import build_condition, stored_query
from correlation.event_query.checking import check_streams
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.event_query.picture import draw_constraints
from correlation.event_query.plan import plan_query
from correlation.event_query.reading import QueryResultReader
from correlation.resources.streams import Stream
from service.checks import checked_stream
from service.documents.models import StreamDocument

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "queries.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```([\w .]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(
    # An en dash separates begin and end.
    r"^\| (\w+) \| (smoke|report|visit|leak) \| ([\d:]+)(?: \u2013 ([\d:]+))? \| (.*) \|$",
    re.MULTILINE,
)
TIMES = re.compile(r"^Times: ([\d:]+) \u2013 ([\d:]+)\.$", re.MULTILINE)
RESULTS = re.compile(r"^Results: (.*)\.$", re.MULTILINE)
BLOCKS = [(found.group(1), found.group(2), found.end()) for found in BLOCK.finditer(PAGE)]
(RESOURCES,) = [text for mark, text, _ in BLOCKS if mark == "yaml resources"]


class Example(NamedTuple):
    """A query, its events and its results."""

    query: str | dict[str, Any]
    threshold: str | None
    events: dict[str, list[dict[str, Any]]]
    results: list[str]


def _examples() -> list[Example]:
    found = []
    for mark, text, end in BLOCKS:
        kind, _, threshold = mark.partition(" threshold ")
        if kind != "query":
            continue
        line = RESULTS.search(PAGE, end)
        assert line is not None
        streams = ("smoke", "report", "visit", "leak")
        events: dict[str, list[dict[str, Any]]] = {it: [] for it in streams}
        for name, stream, first, last, attributes in ROW.findall(PAGE, end, line.start()):
            times = {"from": first, "to": last} if last else {"at": first}
            moments = {field: f"2026-01-01T{it}:00Z" for field, it in times.items()}
            events[stream].append({"id": name, **moments, **yaml.safe_load(f"{{{attributes}}}")})
        found.append(
            Example(text, threshold or None, events, re.findall(r"`([^`]*)`", line.group(1)))
        )
    return found


def _streams() -> dict[str, Stream]:
    documents = [it for it in yaml.safe_load_all(RESOURCES) if it["kind"] == "stream"]
    found = {}
    for document in documents:
        name = document.pop("name")
        del document["kind"]
        normalised = StreamDocument.model_validate(document).normalised()
        found[name] = checked_stream(name, normalised, {})
    return found


def _unreported() -> str:
    return str(list(yaml.safe_load_all(RESOURCES))[-1]["query"])


def _replay(folder: Path, example: Example) -> list[Any]:
    streams = RESOURCES[: RESOURCES.rindex("---")]
    resources = folder / "resources.yaml"
    document = {"kind": "event_query", "name": "example", "query": example.query}
    if example.threshold is not None:
        document["threshold"] = example.threshold
    resources.write_text(f"{streams}---\n{json.dumps(document)}\n", encoding="utf-8")
    assert len(read_resources([resources])) == 5
    given = []
    for stream, rows in example.events.items():
        file = folder / f"{stream}.jsonl"
        file.write_text("".join(json.dumps(it) + "\n" for it in rows), encoding="utf-8")
        given += ["--events", f"{stream}={file}"]
    alarms = folder / "alarms.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(["replay", "-f", str(resources), *given, "--alarms", str(alarms)])
    assert not ended.value.code
    return [json.loads(line) for line in alarms.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("example", _examples(), ids=lambda it: str(it.query).split()[1])
def test_query_has_the_results_of_the_page(example: Example, tmp_path: Path) -> None:
    results = _replay(tmp_path, example)
    shown = [" ".join(f"{a}={e['id']}" for a, e in it["events"].items()) for it in results]
    assert sorted(shown) == sorted(example.results)


def test_query_of_the_demo_and_its_results_are_shown() -> None:
    (shown,) = [text for mark, text, _ in BLOCKS if mark == "query demo"]
    assert shown.strip() == QUERIES[GROUNDED]["query"]
    events = load_events(31)
    cancelled = sum(event.topic == "cancellations" for event in events)
    assert f"\n{len(judge_grounded(events))} of {cancelled} cancelled flights" in PAGE


def test_first_query_is_the_registered_one_and_its_record_is_shown(tmp_path: Path) -> None:
    example = _examples()[0]
    assert _unreported() == str(example.query).strip()
    (shown,) = [json.loads(text) for mark, text, _ in BLOCKS if mark == "json result"]
    (result,) = [
        it
        for it in _replay(tmp_path, example)
        if it["events"]["s"]["id"] == shown["events"]["s"]["id"]
    ]
    unstable = {"condition", "alarm_id", "detected_at"}
    assert set(result) == set(shown)
    assert len(result["alarm_id"]) == len(shown["alarm_id"])
    assert {k: result[k] for k in result if k not in unstable} == {
        k: shown[k] for k in shown if k not in unstable
    }
    assert list(QueryResultReader().read(shown))
    assert f"`{CE_TYPE}`" in PAGE


def test_json_form_of_the_page_is_the_first_query(tmp_path: Path) -> None:
    (shown,) = [json.loads(text) for mark, text, _ in BLOCKS if mark == "json query"]
    assert shown == query_to_document(parse_query(_unreported()))
    example = _examples()[0]._replace(query=shown)
    assert {it["events"]["s"]["id"] for it in _replay(tmp_path, example)} == {"s2", "s3"}


# All parts of the JSON form.
EVERYTHING = """\
DETECT A {n {var X}, m {3}} ON event s: T {n {var X}, k {>= 0.5}} not event r: R
WHERE s.rt.end < r.rt.end or not r.rt.end <= min(s.rt.begin, s.rt.end),
      r.rt.end <= max(s.rt.begin, s.rt.end - 1 s) and r.rt.end <= s.rt.end + 1 h END"""


def test_page_names_the_fields_of_the_json_form() -> None:
    section = PAGE[PAGE.index("## JSON form") : PAGE.index("## Limits")]
    named = set(re.findall(r"`(?:\{\")?(\w+)", section[section.index("| part |") :]))
    assert _fields(query_to_document(parse_query(EVERYTHING))) - named == set()


def _fields(value: object) -> set[str]:
    """Return the names of the fields of all objects."""
    if isinstance(value, dict):
        return set(value).union(*map(_fields, value.values()))
    return set().union(*map(_fields, value)) if isinstance(value, list) else set()


REFUSED = [
    (text, BLOCKS[place + 1][1].strip())
    for place, (mark, text, _) in enumerate(BLOCKS)
    if mark == "query refused"
]


@pytest.mark.parametrize(("query", "expected"), REFUSED)
def test_refused_query_has_the_error_of_the_page(query: str, expected: str) -> None:
    streams = _streams()
    with pytest.raises(InvalidFieldError) as caught:
        check_streams(build_condition("example", 1, {"query": stored_query(query)}), streams)
    assert str(caught.value) == expected


def test_plan_has_the_sentences_and_the_picture_of_the_page() -> None:
    streams = _streams()
    condition = build_condition("unreported", 1, {"query": _unreported()})
    (shown,) = [text for mark, text, _ in BLOCKS if mark == "plan"]
    assert shown.splitlines() == plan_query(condition, streams)["sentences"]
    picture = (DOCS / "images" / "query-plan.svg").read_text(encoding="utf-8")
    assert picture == draw_constraints(condition, streams)


def test_page_has_examples_of_all_kinds() -> None:
    assert len(_examples()) >= 8
    assert {it.threshold is None for it in _examples()} == {True, False}
    assert len(REFUSED) == 3


def test_result_has_the_time_of_the_page(tmp_path: Path) -> None:
    (example,) = [it for it in _examples() if "Overdue" in str(it.query)]
    (result,) = _replay(tmp_path, example)
    (shown,) = TIMES.findall(PAGE)
    moments = [datetime.fromisoformat(f"2026-01-01T{it}:00+00:00") for it in shown]
    assert [result["begin"], result["end"]] == [it.timestamp() * 1e6 for it in moments]
