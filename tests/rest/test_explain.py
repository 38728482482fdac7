"""Explanations of pairs over REST, for given events and for events found in Kafka by id."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import Sent, create_topics, produce
from tests.support.messages import assert_names
from tests.support.patience import SERVICE_SECONDS

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.kafka
_NUMBERS = itertools.count()
SECOND = 1_000_000
NOON_US = 1_767_268_800_000_000
MAPPING = {"id": "mic", "key": "site", "time": "at", "before": "500ms", "format": "epoch_s"}


def put_pair(service: Service, mapping: dict[str, str] | None = None, **changes: Any) -> str:  # noqa: ANN401  JSON
    """Register a condition on two streams of their own topics; give its path."""
    client, number = service.client, next(_NUMBERS)
    for role in "ab":
        document = {
            "topic": f"{service.settings.prefix}-{role}{number}",
            "max_uncertainty": "2s",
            "max_delay": "1s",
            "clock": "replay",
            "mapping": mapping,
        }
        answer = client.put(f"/v1/streams/{role}{number}", json=document)
        assert answer.status_code == 201, answer.text
    pair = {"kind": "mutual_deadline", "a": f"a{number}", "b": f"b{number}", "window": "1s"}
    path = f"/v1/conditions/c{number}"
    answer = client.put(path, json={**pair, "threshold": 0.6, **changes})
    assert answer.status_code == 201, answer.text
    return path


def topic_of(service: Service, path: str, role: str) -> str:
    return f"{service.settings.prefix}-{path.replace('/v1/conditions/c', role)}"


def event(earliest: int, latest: int, key: str = "north", **more: object) -> dict[str, Any]:
    return {"id": "e", "key": key, "earliest": earliest, "latest": latest, **more}


def explain(service: Service, path: str, a: object, b: object, **more: object) -> dict[str, Any]:
    answer = service.client.post(f"{path}/explain", json={"a": a, "b": b, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def problem(answer: httpx.Response, status: int, error_code: int) -> dict[str, str]:
    """Check a problem body; give what it says, by field."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["error_code"]) == (status, error_code)
    assert all(it["problem"] and it["remedy"] for it in body["errors"])
    return {it["field"]: it["problem"] + "; " + it["remedy"] for it in body["errors"]}


def send(service: Service, topic: str, *events: object, **options: Any) -> list[tuple[int, int]]:  # noqa: ANN401  as Sent
    records = [
        Sent(value if isinstance(value, bytes) else json.dumps(value).encode(), **options)
        for value in events
    ]
    return produce(service.settings.bootstrap, topic, records)


def test_given_events_are_explained(service: Service) -> None:
    path = put_pair(service)
    answer = explain(service, path, event(1_500_000, 2_000_000), event(0, 2_000_000))
    assert (answer["verdict"], answer["failed_step"]) == ("satisfied", None)
    assert (answer["condition"], answer["version"]) == (path.rsplit("/", 1)[1], 1)
    assert (answer["probability"], answer["probability_exact"]) == (0.625, "5/8")
    assert answer["regions"]["base_a"]["offset_us"] == 0
    assert answer["a"]["place"] is None


@pytest.mark.parametrize(
    ("a", "b", "step"),
    [
        (event(0, 3 * SECOND), event(0, 0), "contract"),
        (event(0, 0), {}, "contract"),
        (event(0, 0, "north"), event(0, 0, "south"), "key"),
        (event(0, 0), event(9 * SECOND, 9 * SECOND), "expired"),
        (event(1_500_000, 2_000_000), event(0, SECOND), "threshold"),
    ],
)
def test_first_failed_step_is_named(service: Service, a: object, b: object, step: str) -> None:
    answer = explain(service, put_pair(service), a, b)
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", step)


def test_records_are_read_by_the_mapping_as_the_job_does(service: Service) -> None:
    path = put_pair(service, MAPPING)
    record = {"mic": 7, "site": "north", "at": 1_767_268_800.25}
    canonical = event(NOON_US, NOON_US)
    answer = explain(service, path, record, canonical)
    assert (answer["a"]["read_as"], answer["b"]["read_as"]) == ("record", "event")
    assert (answer["a"]["id"], answer["a"]["key"]) == ("7", "north")
    assert (answer["a"]["earliest"], answer["a"]["latest"]) == (
        NOON_US - SECOND // 4,
        NOON_US + SECOND // 4,
    )
    assert answer["verdict"] == "satisfied"
    # An explicit form is not guessed.
    answer = explain(service, path, record, {"record": canonical})
    assert answer["failed_step"] == "contract"
    assert "missing_field" in answer["explanation"]
    # Beyond 64 bits, and beyond all times.
    answer = explain(service, path, {**record, "at": 10**20}, canonical)
    assert answer["a"]["reason"] == "time_out_of_range"


def test_key_and_arrival_of_a_record_count(service: Service) -> None:
    path = put_pair(service)
    bare = {"earliest": NOON_US, "latest": NOON_US}
    answer = explain(service, path, bare, event(NOON_US, NOON_US))
    assert answer["a"]["reason"] == "missing_key"
    given = {"record": bare, "record_key": "north", "record_timestamp": "2026-01-01T12:00:00.5Z"}
    answer = explain(service, path, given, event(NOON_US, NOON_US))
    assert answer["verdict"] == "satisfied"
    assert answer["a"]["record_timestamp"] == NOON_US + SECOND // 2


def test_events_are_found_by_their_ids(service: Service) -> None:
    path = put_pair(service, MAPPING)
    record = {"mic": "mic-1", "site": "north", "at": 1_767_268_800}
    noise = [{**record, "mic": f"mic-{number}"} for number in range(2, 40)]
    send(service, topic_of(service, path, "a"), *noise, b"no JSON", b"[]", record)
    places = send(
        service,
        topic_of(service, path, "b"),
        {**record, "at": 1_767_268_900},
        {**record, "at": 1_767_268_800.5},
        key=b"k",
    )
    answer = explain(service, path, {"id": "mic-1"}, {"id": "mic-1"})
    assert (answer["verdict"], answer["s_us"]) == ("satisfied", SECOND // 2)
    partition, offset = places[1]
    assert answer["b"]["place"] == {
        "topic": topic_of(service, path, "b"),
        "partition": partition,
        "offset": offset,
    }
    (note,) = [it for it in answer["notes"] if "id of b" in it]
    assert_names(note, "2 records", "newest")
    # A found record and a given event.
    answer = explain(service, path, {"id": "mic-1"}, event(NOON_US, NOON_US))
    assert answer["verdict"] == "satisfied"


def test_record_that_is_no_event_is_found_and_explained(service: Service) -> None:
    path = put_pair(service)
    send(service, topic_of(service, path, "a"), event(0, 9 * SECOND, id=12))
    answer = explain(service, path, {"id": 12}, event(0, 0))
    assert answer["failed_step"] == "contract"
    assert "longer_than_declared" in answer["explanation"]
    assert answer["a"]["place"]["offset"] == 0


def test_record_without_an_id_is_found_at_its_place(service: Service) -> None:
    path = put_pair(service, {**MAPPING, "id": "name"})
    topic = topic_of(service, path, "a")
    record = {"site": "north", "at": 1_767_268_800}
    (place,) = send(service, topic, record, partition=1)
    assert place == (1, 0)
    answer = explain(service, path, {"id": f"{topic}-1-0"}, event(NOON_US, NOON_US))
    assert (answer["verdict"], answer["a"]["id"]) == ("satisfied", f"{topic}-1-0")
    # Nothing is there, or no such place.
    for name in (f"{topic}-1-1", f"{topic}-7-0", topic, f"{topic}-1-{10**30}", f"{topic}--1"):
        found = service.client.post(f"{path}/explain", json={"a": {"id": name}, "b": event(0, 0)})
        assert set(problem(found, 404, 40402)) == {"a.id"}


def test_record_that_does_not_meet_itself(service: Service) -> None:
    path = put_pair(service)
    name = path.replace("/v1/conditions/c", "a")
    pair = {"kind": "mutual_deadline", "a": name, "b": name, "window": "1s", "threshold": 1}
    service.client.put(f"{path}-self", json=pair)
    send(service, topic_of(service, path, "a"), event(0, 0, id="x"))
    answer = explain(service, f"{path}-self", {"id": "x"}, {"id": "x"})
    assert answer["failed_step"] == "same_event"


def test_a_place_names_any_record_also_one_that_is_not_json(service: Service) -> None:
    path = put_pair(service)
    topic = topic_of(service, path, "a")
    for value in (event(0, 0, id="x"), b"hello", b"\xff", [1]):
        send(service, topic, value, partition=0)
    produce(service.settings.bootstrap, topic, [Sent(None, partition=0)])
    answer = explain(service, path, {"id": f"{topic}-0@0"}, event(0, 0))
    assert (answer["verdict"], answer["a"]["id"]) == ("satisfied", "x")
    reasons = ["malformed_json", "wrong_encoding", "not_an_object", "null_value"]
    for offset, reason in enumerate(reasons, 1):
        answer = explain(service, path, {"id": f"{topic}-0@{offset}"}, event(0, 0))
        assert (answer["failed_step"], answer["a"]["reason"]) == ("contract", reason)
        assert answer["a"]["place"] == {"topic": topic, "partition": 0, "offset": offset}
    refused = service.client.post(
        f"{path}/explain", json={"a": {"id": f"{topic}-0@5"}, "b": event(0, 0)}
    )
    assert "was not found" in problem(refused, 404, 40402)["a.id"]


def test_id_that_is_not_found_says_where_it_was_looked_for(service: Service) -> None:
    path = put_pair(service)
    send(service, topic_of(service, path, "a"), event(0, 0, id="x"))
    answer = service.client.post(f"{path}/explain", json={"a": {"id": "y"}, "b": {"id": "x"}})
    said = problem(answer, 404, 40402)
    assert set(said) == {"a.id", "b.id"}
    assert_names(said["a.id"], "'y'", "1 records", topic_of(service, path, "a"))
    assert_names(said["a.id"], "all its records", "send the event itself")


def test_lookup_is_bounded_by_records_and_by_time(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap, explain_records=20)
    topic = f"{settings.prefix}-a{next(_NUMBERS) + 1}"
    # Stamped by the sender, so that the range is the test's own.
    create_topics(kafka_bootstrap, {topic: 2})
    with running(settings) as service:
        path = put_pair(service)
        assert topic == topic_of(service, path, "a")
        for second in range(50):
            stamp = (NOON_US // SECOND + second) * 1000
            value = event(0, 0, id=f"e{second}")
            send(service, topic, value, partition=second % 2, timestamp_ms=stamp)
        given = event(0, 0)
        # The newest ten of each partition.
        assert explain(service, path, {"id": "e30"}, given)["verdict"] == "satisfied"
        answer = service.client.post(f"{path}/explain", json={"a": {"id": "e29"}, "b": given})
        said = problem(answer, 404, 40402)["a.id"]
        assert "among 20 records" in said
        assert_names(said, "the newest", "send the event itself", "narrower time range")
        # The newest ten of each partition of a range.
        ranges = {"since": "2026-01-01T12:00:05Z", "until": NOON_US + 20 * SECOND}
        assert explain(service, path, {"id": "e5"}, given, **ranges)["verdict"] == "satisfied"
        assert explain(service, path, {"id": "e20"}, given, **ranges)["verdict"] == "satisfied"
        for name in ("e4", "e21"):
            answer = service.client.post(
                f"{path}/explain", json={"a": {"id": name}, "b": given, **ranges}
            )
            said = problem(answer, 404, 40402)["a.id"]
            assert "among 16 records" in said
            assert "all of the range" in said
        # A range before all records, and one after.
        for second in (-100, 100):
            moment = NOON_US + second * SECOND
            more = {"since": moment, "until": moment + 1}
            answer = service.client.post(
                f"{path}/explain", json={"a": {"id": "e9"}, "b": given, **more}
            )
            assert "among 0 records" in problem(answer, 404, 40402)["a.id"]


def test_lookup_ends_at_its_time_limit(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first requests are answered; no time is left for the records.
    monkeypatch.setattr("service.lookup._SHORTEST_SECONDS", SERVICE_SECONDS)
    with running(fresh_settings(kafka_bootstrap, explain_seconds=1e-6)) as service:
        path = put_pair(service)
        send(service, topic_of(service, path, "a"), event(0, 0, id="x"))
        answer = service.client.post(f"{path}/explain", json={"a": {"id": "x"}, "b": event(0, 0)})
        assert_names(problem(answer, 404, 40402)["a.id"], "time limit")


def test_pause_and_later_changes_are_noted(service: Service) -> None:
    path = put_pair(service)
    for role in "ab":
        send(service, topic_of(service, path, role), event(0, 0, id="x"))
    assert explain(service, path, {"id": "x"}, {"id": "x"})["notes"] == []
    service.client.put(f"{path}/pause")
    notes = explain(service, path, {"id": "x"}, {"id": "x"})["notes"]
    assert len(notes) == 2
    assert_names(notes[0], "paused", "not evaluated")
    assert_names(notes[1], "arrived before", "last change")


def test_unknown_condition_is_not_found(service: Service) -> None:
    body = {"a": event(0, 0), "b": event(0, 0)}
    answer = service.client.post("/v1/conditions/nobody/explain", json=body)
    assert problem(answer, 404, 40401) == {}


@pytest.mark.parametrize(
    ("body", "error_code", "fields"),
    [
        ({}, 42203, {"a", "b"}),
        ({"a": {}}, 42203, {"b"}),
        ({"a": 1, "b": {}}, 42202, {"a"}),
        ({"a": [], "b": {}}, 42202, {"a"}),
        ({"a": {}, "b": {}, "c": {}}, 42203, {"c"}),
        ({"a": {"id": None}, "b": {}}, 42203, {"a.id"}),
        ({"a": {}, "b": {"id": [1]}}, 42203, {"b.id"}),
        ({"a": {"id": True}, "b": {}}, 42203, {"a.id"}),
        ({"a": {"record": 5}, "b": {}}, 42203, {"a.record"}),
        ({"a": {}, "b": {"event": [], "record_key": "k"}}, 42203, {"b.event"}),
        ({"a": {"record": {}, "record_key": 5}, "b": {}}, 42203, {"a.record_key"}),
        ({"a": {"record": {}, "record_timestamp": "noon"}, "b": {}}, 42204, {"a.record_timestamp"}),
        ({"a": {"record": {}, "record_timestamp": -1}, "b": {}}, 42204, {"a.record_timestamp"}),
        ({"a": {"record": {}, "record_timestamp": 10**30}, "b": {}}, 42204, {"a.record_timestamp"}),
        ({"a": {}, "b": {}, "since": "soon"}, 42202, {"since"}),
        ({"a": {}, "b": {}, "until": True}, 42202, {"until"}),
        ({"a": {}, "b": {}, "since": -5}, 42202, {"since"}),
        ({"a": {}, "b": {}, "since": 2000, "until": 1000}, 42203, {"until"}),
    ],
)
def test_bad_request_names_its_field(
    service: Service, body: object, error_code: int, fields: set[str]
) -> None:
    answer = service.client.post("/v1/conditions/x/explain", json=body)
    if answer.status_code == 404:
        answer = service.client.post(f"{put_pair(service)}/explain", json=body)
    assert set(problem(answer, 422, error_code)) == fields


@pytest.mark.parametrize(
    ("content", "media_type", "status", "error_code"),
    [
        (b'{"a": {"x": 1e999}, "b": {}}', "application/json", 422, 42203),
        (b"{", "application/json", 422, 42201),
        (b'{"a": {}, "b": {}}', "text/plain", 415, 41501),
        (b'{"a": {"x": "' + b"x" * 1_100_000 + b'"}, "b": {}}', "application/json", 413, 41301),
        (b'{"a": {"id": "\\ud800"}, "b": {}}', "application/json", 422, 42201),
    ],
    ids=range(5),
)
def test_nasty_body_is_refused(
    service: Service, content: bytes, media_type: str, status: int, error_code: int
) -> None:
    headers = {"Content-Type": media_type}
    path = put_pair(service)
    answer = service.client.post(f"{path}/explain", content=content, headers=headers)
    problem(answer, status, error_code)


def test_lookup_says_when_the_broker_is_away(own_broker: Any) -> None:  # noqa: ANN401  the fixture's
    settings = fresh_settings(own_broker.bootstrap, explain_seconds=2)
    with running(settings) as service:
        path = put_pair(service)
        own_broker.stop()
        answer = service.client.post(f"{path}/explain", json={"a": {"id": "x"}, "b": event(0, 0)})
        problem(answer, 503, 50301)
        # Given events need no broker.
        assert explain(service, path, event(0, 0), event(0, 0))["verdict"] == "satisfied"
