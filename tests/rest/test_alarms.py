"""`GET /v1/alarms`: recent alarms, and live streams that continue after any interruption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.rest.running import Service, fresh_settings, running
from tests.support.event_stream import ACCEPT, listening
from tests.support.kafka import (
    Sent,
    produce,
    produce_in_transaction,
)
from tests.support.patience import wait_until
from tests.support.results import NOON_US, result

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
