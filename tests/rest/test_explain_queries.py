"""Explanations of event queries over REST: negated events are looked for in their topics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import Sent, create_topics, produce
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kafka
MINUTE = 60_000_000
QUERY = """DETECT Alarm {area {var X}} ON event s: Smoke {area {var X}}
not event r: Report {area {var X}} not event v: Visit {area {"lab"}}
WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min,
  v.rt.end >= s.rt.end - 1 min, v.rt.end <= s.rt.end END"""


@pytest.fixture(scope="module")
def service(kafka_bootstrap: str) -> Iterator[Service]:
    with running(fresh_settings(kafka_bootstrap, explain_records=50)) as service:
        topics = {
            name: f"{service.settings.prefix}-{name}" for name in ("smoke", "report", "visit")
        }
        create_topics(service.settings.bootstrap, dict.fromkeys(topics.values(), 1))
        for name, topic in topics.items():
            document = {
                "topic": topic,
                "max_uncertainty": "0s",
                "max_delay": "1s",
                "clock": "replay",
                "attributes": {"area": "area"},
            }
            assert service.client.put(f"/v1/streams/{name}", json=document).status_code == 201
        document = {"kind": "event_query", "query": QUERY}
        assert service.client.put("/v1/conditions/unreported", json=document).status_code == 201
        send(service, "smoke", event("s1", 10), event("s2", 20), event("s3", 30, area="hall"))
        send(
            service,
            "report",
            event("early", 9),
            event("r1", 11),
            event("r2", 12),
            event("other", 21, area="hall"),
            event("other", 21, key="south"),
            b"not JSON",
            {"area": "lab"},
        )
        yield service


def event(name: str, minute: int, key: str = "k", area: str = "lab") -> dict[str, Any]:
    time = minute * MINUTE
    return {"id": name, "key": key, "earliest": time, "latest": time, "area": area}


def send(service: Service, stream: str, *values: object) -> None:
    records = [
        Sent(it if isinstance(it, bytes) else json.dumps(it).encode(), b"k") for it in values
    ]
    produce(service.settings.bootstrap, f"{service.settings.prefix}-{stream}", records)


def explain(
    service: Service, name: str = "unreported", *, until: int | None = None, **events: object
) -> dict[str, Any]:
    asked = {"events": events} | ({} if until is None else {"until": until})
    answer = service.client.post(f"/v1/conditions/{name}/explain", json=asked)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_the_event_that_stops_a_combination_is_found(service: Service) -> None:
    answer = explain(service, s={"id": "s1"})
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", "absence")
    assert answer["roles"] == ["s", "r"]
    assert answer["events"]["r"]["id"] == "r2"
    assert answer["events"]["r"]["place"]["topic"].endswith("-report")
    assert "event r (r2) stops the combination" in answer["explanation"]
    (searched,) = [note for note in answer["notes"] if "events r" in note]
    assert_names(searched, "2 events r", "7 records", answer["events"]["r"]["place"]["topic"])
    assert [it["id"] for it in answer["found"]["r"]] == ["r2", "r1"]
    assert (answer["found"]["v"], answer["complete"]) == ([], True)


def test_without_a_stopping_event_the_answer_names_the_records_searched(service: Service) -> None:
    answer = explain(service, s={"id": "s2"})
    assert answer["verdict"] == "satisfied"
    assert answer["roles"] == ["s"]
    assert answer["complete"] is True
    for alias, count in (("r", 7), ("v", 0)):
        (note,) = [it for it in answer["notes"] if f"no event {alias} " in it]
        assert_names(note, f"{count} records")


def test_other_events_than_the_given_one_are_found(service: Service) -> None:
    given = explain(service, s={"id": "s1"}, r={"id": "early"})
    assert (given["verdict"], given["failed_step"]) == ("not_satisfied", "absence")
    assert given["events"]["r"]["id"] == "early"
    assert [it["id"] for it in given["found"]["r"]] == ["r2", "r1"]
    assert given["explanation"].startswith("event r (r2) stops the combination: ")
    assert_names(given["explanation"], "r does not stop", "s.rt.end <= r.rt.begin")


def test_nothing_is_searched_if_a_given_event_decides(service: Service) -> None:
    given = explain(service, s={"id": "s1"}, r={"id": "r1"})
    assert given["failed_step"] == "absence"
    assert "complete" not in given
    other = explain(service, s={"id": "s1", "area": "lab"})
    assert other["failed_step"] == "contract"
    assert not [note for note in other["notes"] if "records" in note]


def test_a_time_range_and_the_limit_of_records_bound_the_search(service: Service) -> None:
    answer = explain(service, s=event("s9", 10), until=1)
    assert answer["verdict"] == "satisfied"
    assert "among 0 records" in " ".join(answer["notes"])
    assert answer["complete"] is False
    assert_names(answer["explanation"], "part of the records", "others may stop")
    send(service, "report", *(event(f"x{number}", 1000) for number in range(50)))
    answer = explain(service, s=event("s9", 10))
    assert answer["verdict"] == "satisfied"
    assert "among 50 records" in " ".join(answer["notes"])
    assert "the newest" in " ".join(answer["notes"])
    assert answer["complete"] is False


LEAKS = """DETECT Unreported {area {var X}} ON event a: Leak {area {var X}}
   not event c: Call {area {var X}}
WHERE a.rt.end <= c.rt.end, c.rt.end <= a.rt.end + 5 min END"""


def test_the_probability_follows_from_all_events_found(service: Service) -> None:
    """The example of docs/queries.md: one report leaves 0.5 or 0.6, both leave 0.4."""
    for name, uncertainty in (("leak", "10min"), ("call", "0s")):
        topic = f"{service.settings.prefix}-{name}"
        create_topics(service.settings.bootstrap, {topic: 1})
        document = {
            "topic": topic,
            "max_uncertainty": uncertainty,
            "max_delay": "1s",
            "clock": "replay",
            "attributes": {"area": "area"},
        }
        assert service.client.put(f"/v1/streams/{name}", json=document).status_code == 201
    query = {"kind": "event_query", "query": LEAKS, "threshold": 0.45}
    assert service.client.put("/v1/conditions/leaks", json=query).status_code == 201
    leak = {**event("a3", 50), "earliest": 40 * MINUTE}
    send(service, "leak", leak)
    send(service, "call", event("r3", 46), event("r4", 44), event("r5", 39))
    for given in (None, {"id": "r3"}, {"id": "r4"}, event("r4", 44), {"id": "r5"}):
        if given is None:
            answer = explain(service, "leaks", a={"id": "a3"})
        else:
            answer = explain(service, "leaks", a={"id": "a3"}, c=given)
        assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", "threshold")
        assert answer["absence"]["probability_exact"] == "2/5"
        assert {it["id"] for it in answer["found"]["c"]} == {"r3", "r4"}
        assert answer["complete"] is True
    send(service, "call", *(event(f"x{number}", 45) for number in range(45)))
    answer = explain(service, "leaks", a={"id": "a3"})
    assert answer["absence"]["probability_exact"] == "2/5"
    send(service, "call", *(event(f"y{number}", 1000) for number in range(50)))
    answer = explain(service, "leaks", a={"id": "a3"})
    assert (answer["verdict"], answer["complete"]) == ("satisfied", False)
    assert_names(answer["explanation"], "others may stop")


FIELDS = (
    *("condition", "version", "kind", "verdict", "failed_step", "explanation", "steps", "roles"),
    *("events", "notes", "time", "type", "decided_when", "regions", "since", "until"),
)


def test_aliases_may_be_names_of_fields(service: Service) -> None:
    positive = " ".join(f"event {alias}: Smoke {{area {{var X}}}}" for alias in FIELDS)
    relations = ", ".join(f"{alias}.rt.end = verdict.rt.end" for alias in FIELDS)
    text = f"DETECT Many ON {positive} WHERE {relations} END"
    document = {"kind": "event_query", "query": text}
    assert service.client.put("/v1/conditions/many", json=document).status_code == 201
    asked = {"events": {alias: event(f"id-{alias}", 5) for alias in FIELDS}}
    answer = service.client.post("/v1/conditions/many/explain", json=asked).json()
    assert (answer["condition"], answer["verdict"]) == ("many", "satisfied")
    assert answer["roles"] == [*FIELDS]
    assert {alias: it["id"] for alias, it in answer["events"].items()} == {
        alias: f"id-{alias}" for alias in FIELDS
    }


def test_events_in_other_fields_are_refused(service: Service) -> None:
    path = "/v1/conditions/unreported/explain"
    answer = service.client.post(
        path, json={"s": {"id": "s1"}, "events": {"x": {}, "r": {"id": 1.5}}}
    )
    assert answer.status_code == 422
    remedies = {it["field"]: it["remedy"] for it in answer.json()["errors"]}
    assert set(remedies) == {"events.s", "events.x", "s"}
    assert remedies["events.x"] == "use s, r, v"
    assert_names(remedies["events.s"], "stream smoke")
    assert_names(remedies["s"], "events s, r, v", "field events")
    answer = service.client.post(path, json={"events": {"s": {"id": "none"}}})
    assert [it["field"] for it in answer.json()["errors"]] == ["events.s.id"]
