"""Validation with samples: of the request, and of topics of a real Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.rest.running import fresh_settings, running
from tests.rest.test_resources import fresh, head, pair, problem, put_stream
from tests.rest.test_topk import SECOND, put_sets, topk
from tests.support.kafka import Sent, create_topics, produce
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
PATH = "/v1/conditions:validate"
FROM_TOPIC = {"sample_from_topic": "true"}


def event(second: float, tags: object = ("a", "b"), **more: object) -> dict[str, Any]:
    return {"id": f"e{second}", "time": int(second * SECOND), "tags": tags, **more}


def ask(service: Service, body: dict[str, Any], **params: object) -> dict[str, Any]:
    answer = service.client.post(PATH, json=body, params={k: str(v) for k, v in params.items()})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def put_topic(service: Service, *, partitions: int = 1) -> tuple[str, str]:
    """Register a stream of sets with a topic of its own; return both names."""
    topic = f"{service.settings.prefix}-{fresh('topic')}"
    create_topics(service.settings.bootstrap, {topic: partitions})
    return put_sets(service, topic=topic), topic


def send(service: Service, topic: str, records: Iterable[Sent]) -> None:
    produce(service.settings.bootstrap, topic, records)


def test_a_sample_of_the_request_yields_facts_and_estimates(service: Service) -> None:
    name, before = put_sets(service), head(service)
    records = [
        event(0),
        {"record": event(1, ["a", "b"]), "record_key": "k", "record_timestamp": 5},
        event(2, ["b", "c"]),
        event(4, "a b"),
        7,
    ]
    answer = ask(service, {"condition": topk(name, k=1), "sample": {name: records}})
    assert (answer["valid"], answer["errors"]) == (True, [])
    found = answer["sample"]
    bad_tokens, not_an_object = found["streams"][name].pop("problems")
    assert_names(bad_tokens, "record 4", "bad_tokens", "field 'tags'", "string")
    assert_names(not_an_object, "record 5", "not_an_object", "number")
    assert found["streams"] == {
        name: {
            "records": 5,
            "events": 3,
            "filtered": 0,
            "rejected": {"bad_tokens": 1, "not_an_object": 1},
            "first_time": 0,
            "last_time": 2 * SECOND,
            "events_per_second": 1.0,
            "arrivals_per_second": None,
        }
    }
    assert (found["sets"][name]["sets"], found["sets"][name]["distinct_tokens"]) == (3, 3)
    trial = found["trial"]
    assert (trial["listed_pairs"], trial["last_similarity"], trial["identical_sets"]) == (1, 1.0, 1)
    # 1 set per second, for 10 s.
    assert found["expected"]["valid_sets"] == {name: 10}
    rejected, identical = found["warnings"]
    assert_names(rejected, name, "2 of 5 records", "(bad_tokens 1, not_an_object 1)")
    assert_names(identical, "all 1 pairs", "identical sets")
    # The rate of the sample, and a given one.
    assert answer["derived"]["expected_buffered_events"] == {name: 11}
    given = {"condition": topk(name), "sample": {name: records}, "rates": {name: 100}}
    assert ask(service, given)["derived"]["expected_buffered_events"] == {name: 1100}
    assert head(service) == before


def test_samples_of_other_kinds_yield_rates(service: Service) -> None:
    a, b = put_stream(service), put_stream(service)
    records = [
        {"id": str(at), "key": "k", "earliest": at * SECOND, "latest": at * SECOND}
        for at in range(5)
    ]
    answer = ask(service, {"condition": pair(a, b), "sample": {a: records, b: records[::2]}})
    with_rates = ask(service, {"condition": pair(a, b), "rates": {a: 1, b: 0.5}})
    assert answer["derived"] == with_rates["derived"]
    assert answer["derived"]["chance_alarms_per_hour"] > 0
    assert set(answer["sample"]) == {"streams", "warnings"}
    assert answer["sample"]["streams"][b]["events_per_second"] == 0.5
    assert answer["sample"]["warnings"] == []
    assert with_rates["sample"] is None


def test_a_sample_may_lack_a_stream(service: Service) -> None:
    a, b = put_sets(service), put_sets(service)
    records = [event(0), event(5)]
    answer = ask(service, {"condition": topk(a, b=b), "sample": {a: records}})
    assert answer["sample"]["expected"] is None
    assert "expected_buffered_events" not in answer["derived"]
    rated = {"condition": topk(a, b=b), "sample": {a: records}, "rates": {b: 1}}
    answer = ask(service, rated)
    assert answer["derived"]["expected_buffered_events"] == {a: 2, b: 11}
    assert answer["sample"]["expected"] is None


def test_the_newest_records_of_a_topic_are_a_sample(service: Service) -> None:
    name, topic = put_topic(service, partitions=2)
    # Two records per second of Kafka's clock, on partitions with different shares.
    sent = [
        Sent(json.dumps(event(at, ["a", f"t{at}"])).encode(), None, int(at % 5 == 0), 500 * at + 1)
        for at in range(40)
    ]
    sent += [Sent(b"{", None, 0, 20_500), Sent(None, b"k", 1, 20_501)]
    send(service, topic, sent)
    body = {"condition": topk(name)}
    answer = ask(service, body, **FROM_TOPIC)
    found = answer["sample"]["streams"][name]
    assert (found["records"], found["events"]) == (42, 40)
    assert found["rejected"] == {"malformed_json": 1, "null_value": 1}
    assert (found["events_per_second"], found["arrivals_per_second"]) == (1.0, 2.0)
    assert answer["sample"]["sets"][name]["distinct_tokens"] == 41
    # The newest twelve of the topic, not of each partition.
    answer = ask(service, body, **FROM_TOPIC, sample_records=12)
    found = answer["sample"]["streams"][name]
    assert (found["records"], found["events"], found["first_time"]) == (12, 10, 30 * SECOND)
    assert answer["sample"]["expected"]["valid_sets"] == {name: 10}
    assert answer["derived"]["expected_buffered_events"] == {name: 11}


def test_rate_is_right_if_busy_partitions_are_cut(kafka_bootstrap: str) -> None:
    """Two records of each partition are read, of up to six of the sample."""
    with running(fresh_settings(kafka_bootstrap, explain_records=6)) as service:
        name, topic = put_topic(service, partitions=3)
        # Partitions 0 and 1 have two events per second each, partition 2 has one in 10 s.
        sent = [
            Sent(json.dumps(event(at / 2, id=f"{part}.{at}")).encode(), None, part, 500 * at + 1)
            for part in (0, 1)
            for at in range(61)
        ]
        sent += [
            Sent(json.dumps(event(at, id=f"2.{at}")).encode(), None, 2, 1000 * at + 1)
            for at in (10, 20)
        ]
        send(service, topic, sent)
        answer = ask(service, {"condition": topk(name)}, **FROM_TOPIC)
        found = answer["sample"]["streams"][name]
        assert (found["records"], found["first_time"]) == (6, 10 * SECOND)
        assert (found["events_per_second"], found["arrivals_per_second"]) == (4.1, 4.1)
        assert_names(answer["sample"]["warnings"][0], topic, "2 partitions", "sum of the rates")
        assert_names(answer["sample"]["warnings"][0], "COINCIDE_EXPLAIN_RECORDS")
        # The newest three records are complete.
        answer = ask(service, {"condition": topk(name)}, **FROM_TOPIC, sample_records=3)
        assert [it for it in answer["sample"]["warnings"] if "EXPLAIN_RECORDS" in it] == []


def test_streams_of_one_topic_read_it_once(service: Service) -> None:
    topic = f"{service.settings.prefix}-{fresh('topic')}"
    create_topics(service.settings.bootstrap, {topic: 1})
    names = [put_sets(service, topic=topic, where={"rule": it}) for it in "xy"]
    send(
        service,
        topic,
        [Sent(json.dumps(event(at, rule="xxy"[at % 3])).encode()) for at in range(9)],
    )
    found = ask(service, {"condition": topk(names[0], b=names[1])}, **FROM_TOPIC)["sample"]
    counts = [(it["records"], it["events"], it["filtered"]) for it in found["streams"].values()]
    assert counts == [(9, 6, 3), (9, 3, 6)]
    assert found["trial"]["listed_pairs"] == 2


@pytest.mark.parametrize(
    ("sample", "part"),
    [
        ([], "object"),
        ({}, "no stream"),
        ({"s": {}}, "list of records"),
        ({"s": []}, "s has no records"),
    ],
)
def test_a_sample_without_records_is_refused(service: Service, sample: object, part: str) -> None:
    answer = service.client.post(PATH, json={"condition": topk("s"), "sample": sample})
    # The condition is checked, too: its stream does not exist.
    assert problem(answer, 422, 42202) == ["sample", "a"]
    assert_names(answer.json()["errors"][0]["problem"], part)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"record": 5}, "record"),
        ({"record": {}, "record_key": 5}, "record_key"),
        ({"record": {}, "record_timestamp": "noon"}, "record_timestamp"),
        ({"event": {"time": 0}}, "event"),
        ({"time": 1e400}, "time"),
    ],
)
def test_a_record_in_a_wrong_form_is_named(service: Service, record: object, field: str) -> None:
    name = put_sets(service)
    body = json.dumps({"condition": topk(name), "sample": {name: [event(0), record]}})
    headers = {"Content-Type": "application/json"}
    content = body.replace("Infinity", "1e400")
    answer = service.client.post(PATH, content=content, headers=headers)
    assert (answer.status_code, answer.json()["valid"]) == (200, False)
    assert [it["field"] for it in answer.json()["errors"]] == [f"sample.{name}[1].{field}"]


def test_samples_of_other_streams_are_named(service: Service) -> None:
    a, b = put_sets(service), put_sets(service)
    answer = ask(service, {"condition": topk(a), "sample": {a: [event(0)], b: [event(0)]}})
    (error,) = answer["errors"]
    assert (answer["valid"], error["field"], error["remedy"]) == (False, f"sample.{b}", f"use {a}")
    # A document that is not valid is reported first.
    answer = ask(service, {"condition": topk(a, k=0), "sample": {b: [event(0)]}})
    assert [it["field"] for it in answer["errors"]] == ["k"]


def test_two_samples_are_refused(service: Service) -> None:
    name = put_sets(service)
    body = {"condition": topk(name), "sample": {name: [event(0)]}}
    answer = service.client.post(PATH, json=body, params=FROM_TOPIC)
    assert problem(answer, 422, 42203) == ["sample"]
    for wrong in (0, 10_001, "all"):
        params = {**FROM_TOPIC, "sample_records": str(wrong)}
        answer = service.client.post(PATH, json={"condition": topk(name)}, params=params)
        assert problem(answer, 422, 42202) == ["sample_records"]


def test_a_sample_that_is_too_large_is_refused(service: Service) -> None:
    name = put_sets(service)

    def answer(records: list[Any]) -> httpx.Response:
        body = {"condition": topk(name), "sample": {name: records}}
        return service.client.post(PATH, json=body)

    # Of a document, 10,000 values are read.
    many = answer([event(at) for at in range(4_000)])
    assert many.json()["sample"]["streams"][name]["events"] == 4_000
    found = answer([[0] * 100_000])
    assert problem(found, 422, 42201) == [f"sample.{name}[0]"]
    assert_names(found.json()["errors"][0]["problem"], "100,000 values")
    assert "sample_from_topic" in found.json()["errors"][0]["remedy"]
    problem(answer(["x" * 1_100_000]), 413, 41301)


def test_a_topic_without_records_is_no_sample(service: Service) -> None:
    (a, full), (b, empty) = put_topic(service), put_topic(service)
    send(service, full, [Sent(json.dumps(event(0)).encode())])
    answer = service.client.post(PATH, json={"condition": topk(a, b=b)}, params=FROM_TOPIC)
    assert problem(answer, 404, 40404) == ["sample_from_topic"]
    assert answer.json()["errors"][0]["problem"] == f"topic {empty} of stream {b} has no records"
    admin = AdminClient({"bootstrap.servers": service.settings.bootstrap})
    admin.delete_topics([empty])[empty].result()
    wait_until(lambda: empty not in admin.list_topics(timeout=PATIENCE_SECONDS).topics)
    answer = service.client.post(PATH, json={"condition": topk(b)}, params=FROM_TOPIC)
    assert problem(answer, 404, 40404) == ["sample_from_topic"]
    assert answer.json()["errors"][0]["problem"] == f"topic {empty} of stream {b} does not exist"


def test_reading_of_a_topic_ends_at_its_time_limit(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first requests are answered; no time is left for the records.
    monkeypatch.setattr("service.lookup._SHORTEST_SECONDS", SERVICE_SECONDS)
    with running(fresh_settings(kafka_bootstrap, explain_seconds=1e-6)) as service:
        name, topic = put_topic(service)
        send(service, topic, [Sent(json.dumps(event(0)).encode())])
        answer = service.client.post(PATH, json={"condition": topk(name)}, params=FROM_TOPIC)
        assert problem(answer, 404, 40404) == ["sample_from_topic"]
        assert_names(answer.json()["errors"][0]["problem"], topic, "time limit")


def test_a_broker_that_is_away_is_reported(own_broker: Any) -> None:  # noqa: ANN401 - the fixture's
    with running(fresh_settings(own_broker.bootstrap, explain_seconds=2)) as service:
        name = put_sets(service)
        own_broker.stop()
        answer = service.client.post(PATH, json={"condition": topk(name)}, params=FROM_TOPIC)
        problem(answer, 503, 50301)
        # A sample of the request needs no broker.
        assert ask(service, {"condition": topk(name), "sample": {name: [event(0)]}})["valid"]
