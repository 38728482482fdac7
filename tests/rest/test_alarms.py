"""`GET /v1/alarms`: recent alarms, and live feeds that continue after any interruption."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.rest.running import Service, fresh_settings, running
from tests.support.event_stream import ACCEPT, listening
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    recreate_topic,
)
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.results import NOON_US, headers_of, result
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from tests.support.event_stream import Event

pytestmark = pytest.mark.kafka
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "x", "window": "2s", "threshold": 0.7}


def listed(client: httpx.Client, **parameters: str | int) -> list[dict[str, Any]]:
    answer = client.get("/v1/alarms", params=parameters)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def numbers(found: list[Any]) -> list[int]:
    return [it["record"]["number"] for it in found]


def numbers_of(events: list[Event]) -> list[int]:
    return numbers([it.data for it in events])


def register(client: httpx.Client, condition: str, output_topic: str | None) -> None:
    stream = {"topic": "events-of-alarm-tests", "max_uncertainty": "2s", "max_delay": "1s"}
    assert client.put("/v1/streams/x", json=stream).is_success
    document = {**PAIR, "output_topic": output_topic}
    assert client.put(f"/v1/conditions/{condition}", json=document).is_success


def send(service: Service, *records: Sent, topic: str | None = None) -> list[tuple[int, int]]:
    settings = service.settings
    return produce(settings.bootstrap, topic or settings.topics.alarms, records)


def test_list_has_the_committed_alarms_of_all_topics(service: Service) -> None:
    settings, client = service.settings, service.client
    own, topics = f"{settings.prefix}-siem", settings.topics
    register(client, "own", own)
    (place,) = send(service, result(1, key="north"))
    produce_in_transaction(settings.bootstrap, topics.alarms, [result(2)], aborted=True)
    produce_in_transaction(settings.bootstrap, topics.alarms, [result(3, key="south")])
    changes = topics.channel_topic("topk")
    changed = "coincide.topk.change.v1"
    send(service, result(4, "closest", 'closest/["a", "b"]', ce_type=changed), topic=changes)
    send(service, result(5, "own"), topic=own)
    wait_until(lambda: len(listed(client)) == 4)
    items = sorted(listed(client), key=lambda it: it["record"]["number"])
    assert numbers(items) == [1, 3, 4, 5]
    assert [it["topic"] for it in items] == [topics.alarms, topics.alarms, changes, own]
    assert (items[0]["partition"], items[0]["offset"]) == place
    assert [it["type"] for it in items] == [
        *["coincide.alarm.v1"] * 2,
        changed,
        "coincide.alarm.v1",
    ]
    assert {it["error"] for it in items} == {None}
    # Newest first.
    times = [it["timestamp"] for it in listed(client)]
    assert times == sorted(times, reverse=True)
    reading = client.get("/v1/alarms").json()["reading"]
    assert reading == dict.fromkeys([topics.alarms, changes, own])

    assert numbers(listed(client, condition="own")) == [5]
    assert numbers(listed(client, key="south")) == [3]
    assert sorted(numbers(listed(client, since="2026-01-01T12:00:04Z"))) == [4, 5]
    bounds = {"since": NOON_US + 3_000_000, "until": NOON_US + 4_000_000}
    assert sorted(numbers(listed(client, **bounds))) == [3, 4]

    paged, after = [], ""
    while True:
        page = client.get("/v1/alarms", params={"limit": 1, **({"after": after} if after else {})})
        paged += page.json()["items"]
        after = page.json()["next"]
        if after is None:
            break
    assert paged == listed(client)

    # The topic is followed as long as a condition names it.
    assert client.delete("/v1/conditions/own").status_code == 204
    wait_until(lambda: sorted(numbers(listed(client))) == [1, 3, 4])


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"condition": "NOT A NAME"}, "condition"),
        ({"since": "yesterday"}, "since"),
        ({"until": "99999999999999999999999"}, "until"),
        ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until"),
        ({"limit": 0}, "limit"),
        ({"after": "coincide.alarms"}, "after"),
        ({"conditoin": "c"}, "conditoin"),
    ],
)
def test_wrong_parameter_is_named(
    client: httpx.Client, parameters: dict[str, str | int], field: str
) -> None:
    answer = client.get("/v1/alarms", params=parameters)
    assert answer.status_code == 422
    assert [it["field"] for it in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("last_id", [b"x", b"A" * 40, "é".encode(), b"A" * 40_000, b"AQ", b"=="])
def test_forged_id_is_refused(client: httpx.Client, last_id: bytes) -> None:
    headers = [(b"Accept", b"text/event-stream"), (b"Last-Event-ID", last_id)]
    answer = client.get("/v1/alarms", headers=headers)
    assert answer.status_code == 422
    assert [it["field"] for it in answer.json()["errors"]] == ["Last-Event-ID"]


def test_id_of_another_installation_is_refused(kafka_bootstrap: str, client: httpx.Client) -> None:
    with running(fresh_settings(kafka_bootstrap)) as other, listening(other.client) as stream:
        foreign = stream.id
    answer = client.get("/v1/alarms", headers={**ACCEPT, "Last-Event-ID": foreign})
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42207)


@pytest.mark.parametrize("parameter", ["limit", "after"])
def test_parameters_of_pages_are_refused_for_streams(client: httpx.Client, parameter: str) -> None:
    answer = client.get("/v1/alarms", headers=ACCEPT, params={parameter: "1"})
    assert answer.status_code == 422
    assert [it["field"] for it in answer.json()["errors"]] == [parameter]


def test_stream_has_the_events_of_its_filter(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        register(client, "own", f"{service.settings.prefix}-own")
        with listening(client, condition="own") as own, listening(client, key="south") as south:
            assert "retry: 3000" in own.opening.lines
            nasty = result(1, "own", text="line\nbreak\u2028 and\r\nanother", ce_type="gap")
            written = Sent(nasty.value, b"\n\nid: x", headers=nasty.headers)
            send(service, result(0), written, result(2, "own", "south"), result(3, key="south"))
            first, second = own.take(2)
            assert numbers_of([first, second]) == [1, 2]
            # The names of the service's own events are not those of records.
            assert (first.name, second.name) == ("", "coincide.alarm.v1")
            assert first.data["record"]["text"] == "line\nbreak\u2028 and\r\nanother"
            assert sum(line.startswith("data: ") for line in first.lines) == 1
            assert sorted(numbers_of(south.take(2))) == [2, 3]
        # The list and a stream together miss nothing and repeat nothing.
        page = client.get("/v1/alarms").json()
        with listening(client, page["position"]) as stream:
            send(service, result(4))
            assert numbers_of(stream.take(1)) == [4]
        assert sorted(numbers(page["items"])) == [0, 1, 2, 3]
        # A stream with `since` begins with recent alarms.
        with listening(client, since=NOON_US + 3_000_000) as stream:
            assert sorted(numbers_of(stream.take(2))) == [3, 4]


def test_stream_continues_exactly_over_a_restart_of_the_service(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    alarms = settings.topics.alarms
    with running(settings) as service, listening(service.client) as stream:
        opened = stream.id
        for number in range(6):
            produce_in_transaction(kafka_bootstrap, alarms, [result(number, partition=number % 2)])
        produce_in_transaction(kafka_bootstrap, alarms, [result(99)], aborted=True)
        before = stream.take(3)
    produce_in_transaction(kafka_bootstrap, alarms, [result(6)])
    with running(settings) as service:
        assert sorted(numbers(listed(service.client))) == [0, 1, 2, 3, 4, 5, 6]
        with listening(service.client, before[-1].id) as stream:
            send(service, result(7))
            rest = stream.take(5)
        assert {it.name for it in rest} == {"coincide.alarm.v1"}
        assert sorted(numbers_of(before) + numbers_of(rest)) == list(range(8))
        with listening(service.client, opened) as stream:
            assert sorted(numbers_of(stream.take(8))) == list(range(8))
        with listening(service.client, rest[-1].id) as stream:
            send(service, result(8))
            assert numbers_of(stream.take(1)) == [8]


def test_stream_ends_when_the_service_stops(kafka_bootstrap: str) -> None:
    with ExitStack() as streams:
        with running(fresh_settings(kafka_bootstrap)) as service:
            # A client of its own, which stays connected.
            url = service.client.base_url
            client = streams.enter_context(httpx.Client(base_url=url, timeout=PATIENCE_SECONDS))
            found = [streams.enter_context(listening(client)) for _ in range(5)]
            send(service, result(1))
            assert [numbers_of(it.take(1)) for it in found] == [[1]] * 5
        # The server has ended, though the clients have not disconnected.
        assert [it.rest() for it in found] == [[]] * 5


def test_gap_is_reported_where_alarms_left_the_memory(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap, event_partitions=1, recent_alarms=3)
    with running(settings) as service:
        with listening(service.client) as stream:
            send(service, *map(result, range(3)))
            last = stream.take(3)[0].id
        send(service, *map(result, range(3, 8)))
        wait_until(lambda: numbers(listed(service.client)) == [7, 6, 5])
        with listening(service.client, last) as stream:
            gap, *rest = stream.take(4)
        assert (gap.name, gap.data["topics"]) == ("gap", [settings.topics.alarms])
        assert numbers_of(rest) == [5, 6, 7]
        with listening(service.client, gap.id) as stream:
            assert numbers_of(stream.take(3)) == [5, 6, 7]


def test_readers_beyond_the_limit_are_refused(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap, alarm_readers=3)
    with running(settings) as service, ExitStack() as streams:
        client = service.client
        opened = [streams.enter_context(listening(client)) for _ in range(2)]
        with listening(client):
            answers = [client.get("/v1/alarms", headers=ACCEPT) for _ in range(1000)]
            assert {(it.status_code, it.json()["error_code"]) for it in answers} == {(503, 50305)}
            assert int(answers[0].headers["Retry-After"]) > 0
            assert "coincide_alarm_readers 3.0" in client.get("/metrics").text
        # A client that disconnects makes room.
        wait_until(lambda: "coincide_alarm_readers 2.0" in client.get("/metrics").text)
        opened.append(streams.enter_context(listening(client)))
        send(service, result(1))
        assert [numbers_of(it.take(1)) for it in opened] == [[1]] * 3
        metrics = client.get("/metrics").text
        assert "coincide_alarm_readers_dropped_total 0.0" in metrics
        assert "coincide_alarm_records_followed_total 1.0" in metrics


def test_slow_reader_is_dropped_and_a_fast_one_gets_all(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap, event_partitions=1, recent_alarms=40)
    with running(settings) as service, listening(service.client) as fast:
        client = service.client
        dropped = threading.Event()

        def is_dropped() -> bool:
            if "coincide_alarm_readers_dropped_total 1.0" in client.get("/metrics").text:
                dropped.set()
            return dropped.is_set()

        # Its bytes are not read: the connection is full after a few megabytes.
        with listening(client):
            number = 0
            while not is_dropped():
                assert number < 10_000
                # The fast reader has taken all before the next ones are sent.
                batch = range(number, number + 20)
                send(service, *(result(it, text="x" * 20_000) for it in batch))
                assert numbers_of(fast.take(20)) == list(batch)
                number += 20
        assert "coincide_alarm_readers 1.0" in client.get("/metrics").text


def test_foreign_records_do_not_stop_anything(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service, listening(service.client) as stream:
        client, alarms = service.client, service.settings.topics.alarms
        foreign = [
            Sent(b"not JSON"),
            Sent(None, b"key"),
            Sent(b"\xff\xfe", headers=(("ce_source", b"/coincide/conditions/NOT A NAME"),)),
            Sent(b"{}", headers=(("ce_source", b"/other"), ("ce_type", b"a\nb"))),
        ]
        broken = Sent(b'{"condition": "c"', headers=headers_of("c"))
        odd = Sent(b'{"v":\n1,\r\n "key": ["x"], "big": 123456789012345678901234567890}', b"k")
        send(service, *foreign, broken, Sent(odd.value, odd.key, headers=headers_of("c", "a\nb")))
        send(service, result(1))
        events = stream.take(3)
        found = {it.data["error"]: it for it in events if "number" not in (it.data["record"] or {})}
        assert found["unreadable"].data["record"] is None
        assert found[None].name == ""
        assert found[None].data["record"]["big"] == 123456789012345678901234567890
        assert listed(client, key="k") == [found[None].data]
        assert len(listed(client)) == 3
        problem = client.get("/v1/alarms").json()["reading"][alarms]
        assert problem.startswith("4 records are not results ")
        assert readiness(client)["ready"]


def test_topic_that_is_deleted_and_created_again_is_followed(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    own = f"{settings.prefix}-own"
    create_topics(kafka_bootstrap, {own: 1})
    with running(settings) as service, listening(service.client) as stream:
        client = service.client
        register(client, "own", own)
        send(service, *(result(it, "own") for it in range(5)), topic=own)
        assert numbers_of(stream.take(5)) == [0, 1, 2, 3, 4]
        last = stream.id
        recreate_topic(kafka_bootstrap, own, 3)
        send(service, result(5, "own"), topic=own)
        assert numbers_of(stream.take(1)) == [5]
        wait_until(lambda: numbers(listed(client)) == [5])
        # The position names the former topic, whose further records cannot be known.
        with listening(client, last) as again:
            gap, event = again.take(2)
        assert (gap.name, gap.data["topics"]) == ("gap", [])
        assert numbers_of([event]) == [5]
        assert client.get("/v1/alarms").json()["reading"][own] is None


def test_route_is_off_if_no_alarms_are_kept(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap, recent_alarms=0)) as service:
        for headers in ({}, ACCEPT):
            answer = service.client.get("/v1/alarms", headers=headers)
            assert (answer.status_code, answer.json()["error_code"]) == (404, 40405)
            assert "COINCIDE_RECENT_ALARMS" in answer.json()["detail"]


def test_alarm_has_its_events_and_the_request_that_explains_it(service: Service) -> None:
    settings, client = service.settings, service.client
    register(client, "seen", None)
    a = {"stream": "x", "id": "1", "key": "k", "earliest": NOON_US, "latest": NOON_US + 5}
    b = {**a, "id": "2"}
    alarm = {"condition": "seen", "detected_at": NOON_US, "decided_by": "probe", "threshold": 0.7}
    values = [{**alarm, "a": a, "b": b}, {**alarm, "a": a, "b": None}, {"foreign": 1}]
    sent = [Sent(json.dumps(it).encode(), b"k", headers=headers_of("seen")) for it in values]
    places = send(service, *sent)
    wait_until(lambda: len(listed(client, condition="seen")) == len(sent))
    shown = []
    for partition, offset in places:
        path = f"/v1/alarms/{settings.topics.alarms}/{partition}/{offset}"
        shown.append(client.get(path).json())
    (item,) = [it for it in listed(client, condition="seen") if it["offset"] == places[0][1]]
    assert {name: shown[0][name] for name in item} == item
    assert [it["events"] for it in shown] == [
        [{"label": "A", "event": a}, {"label": "B", "event": b}],
        [{"label": "A", "event": a}],
        [],
    ]
    assert [it["explain"] is None for it in shown] == [False, True, True]
    explain = shown[0]["explain"]
    answer = client.post(f"/v1/conditions/{explain['condition']}/explain", json=explain["body"])
    assert answer.json()["verdict"] == "satisfied", answer.text
    # Deeper than the answer can be written.
    deep: object = 0
    for _ in range(300):
        deep = [deep]
    nested = {**alarm, "a": {**a, "attributes": {"deep": deep}}, "b": b}
    value = json.dumps(nested).encode()
    ((partition, offset),) = send(service, Sent(value, b"k", headers=headers_of("seen")))
    path = f"/v1/alarms/{settings.topics.alarms}/{partition}/{offset}"
    wait_until(lambda: client.get(path).is_success)
    found = client.get(path).json()
    assert (found["events"], found["explain"]) == ([], None)
    assert found["record"]["a"]["attributes"] == {"deep": deep}
    # Without the condition, or outside of the memory.
    assert client.delete("/v1/conditions/seen").is_success
    partition, offset = places[0]
    found = client.get(f"/v1/alarms/{settings.topics.alarms}/{partition}/{offset}").json()
    assert (found["events"], found["explain"]) == (shown[0]["events"], None)
    for path in (f"{settings.topics.alarms}/{partition}/999", f"nowhere/{partition}/{offset}"):
        missing = client.get(f"/v1/alarms/{path}")
        assert (missing.status_code, missing.json()["error_code"]) == (404, 40406)
