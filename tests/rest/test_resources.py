"""Streams and conditions over REST, on a real Kafka."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import read_committed
from tests.support.patience import PATIENCE_SECONDS
from tests.support.records import built_in_checker

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.kafka
_NUMBERS = itertools.count()


def fresh(prefix: str = "n") -> str:
    """Return a name that no other test of the module uses."""
    return f"{prefix}{next(_NUMBERS)}"


def stream(service: Service, **changes: object) -> dict[str, Any]:
    topic = f"{service.settings.prefix}-events"
    return {"topic": topic, "max_uncertainty": "200ms", "max_delay": "1s", **changes}


def pair(a: str, b: str, **changes: object) -> dict[str, Any]:
    found = {"kind": "mutual_deadline", "a": a, "b": b, "window": "2s", "threshold": 0.6}
    return {**found, **changes}


def put_stream(service: Service, **changes: object) -> str:
    name = fresh("s")
    answer = service.client.put(f"/v1/streams/{name}", json=stream(service, **changes))
    assert answer.status_code == 201, answer.text
    return name


def put_pair(service: Service) -> tuple[str, str, str]:
    """Register a condition on two streams; give its path and theirs."""
    a, b, path = put_stream(service), put_stream(service), f"/v1/conditions/{fresh('c')}"
    assert service.client.put(path, json=pair(a, b)).status_code == 201
    return path, f"/v1/streams/{a}", f"/v1/streams/{b}"


# Offsets of a write: the record, and the marker of its transaction.
WRITE = 2


def head(service: Service) -> int:
    """Offset of the newest record of the config topic."""
    return int(service.client.get("/v1/job").json()["config_head_offset"])


def problem(answer: httpx.Response, status: int, error_code: int) -> list[str]:
    """Check a problem body; give the fields that it names."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "error_code", "errors"}
    assert (body["status"], body["error_code"]) == (status, error_code)
    assert all(it["problem"] and it["remedy"] for it in body["errors"])
    return [it["field"] for it in body["errors"]]


def test_put_creates_then_changes_then_writes_nothing(service: Service) -> None:
    path, client = f"/v1/streams/{fresh()}", service.client
    created = client.put(path, json=stream(service))
    assert created.status_code == 201
    assert created.headers["Location"] == path
    offset = int(created.headers["X-Config-Offset"])
    assert created.headers["ETag"] == f'"{offset}"'
    assert created.json()["version"] == 1
    assert created.json()["document"]["max_uncertainty_us"] == 200_000
    # The same document in other words.
    same = client.put(path, json=stream(service, max_uncertainty_us=200_000) | {"clock": "live"})
    assert problem(same, 422, 42202) == ["max_uncertainty"]
    words = stream(service)
    del words["max_uncertainty"]
    same = client.put(path, json={**words, "max_uncertainty_ms": 200, "clock": "live"})
    assert same.status_code == 200
    assert same.headers["ETag"] == created.headers["ETag"]
    assert same.json() == created.json()
    assert head(service) == offset
    changed = client.put(path, json=stream(service, max_uncertainty="300ms"))
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert int(changed.headers["X-Config-Offset"]) == offset + WRITE
    read = client.get(path)
    # Only the answer to a write says what may be wrong with the topic.
    assert read.json() | {"warnings": []} == changed.json()
    assert read.headers["ETag"] == changed.headers["ETag"]


def test_delete_is_final_and_versions_go_on(service: Service) -> None:
    path, client = f"/v1/streams/{fresh()}", service.client
    client.put(path, json=stream(service))
    gone = client.delete(path)
    assert (gone.status_code, gone.content) == (204, b"")
    assert problem(client.get(path), 404, 40401) == []
    assert problem(client.delete(path), 404, 40401) == []
    config = service.settings.topics.config
    key = path.removeprefix("/v1/").replace("streams/", "stream/").encode()
    records = read_committed(service.settings.bootstrap, config)
    built_in_checker().check(service.settings.prefix, records)
    (deletion,) = (record for record in records if record.key == key and record.value is None)
    # Compaction leaves nothing else of the name.
    assert deletion.headers == {"coincide.version": b"1"}
    assert client.put(path, json=stream(service)).json()["version"] == 2


def test_dry_run_answers_as_if_and_writes_nothing(service: Service) -> None:
    path, client = f"/v1/streams/{fresh()}", service.client
    before = head(service)
    params = {"dry_run": "true"}
    answer = client.put(path, json=stream(service, topic=f"{path[12:]}.x"), params=params)
    assert (answer.status_code, answer.json()["version"]) == (201, 1)
    assert "ETag" not in answer.headers
    assert client.get(path).status_code == 404
    client.put(path, json=stream(service))
    assert (
        client.put(path, json=stream(service, max_uncertainty="1s"), params=params).status_code
        == 200
    )
    assert client.delete(path, params=params).status_code == 204
    assert client.get(path).json()["document"]["max_uncertainty_us"] == 200_000
    assert problem(client.put(path, json={}, params=params), 422, 42202)
    assert head(service) == before + WRITE
    admin = AdminClient({"bootstrap.servers": service.settings.bootstrap})
    assert f"{path[12:]}.x" not in admin.list_topics(timeout=PATIENCE_SECONDS).topics


def test_preconditions_hold_the_write_to_what_was_read(service: Service) -> None:
    path, client = f"/v1/streams/{fresh()}", service.client
    missing = client.put(path, json=stream(service), headers={"If-Match": "*"})
    assert problem(missing, 412, 41201) == []
    first = client.put(path, json=stream(service), headers={"If-None-Match": "*"})
    assert first.status_code == 201
    again = client.put(path, json=stream(service), headers={"If-None-Match": "*"})
    assert problem(again, 412, 41201) == []
    old = {"If-Match": first.headers["ETag"]}
    second = client.put(path, json=stream(service, max_uncertainty="1s"), headers=old)
    assert second.status_code == 200
    assert (
        client.put(path, json=stream(service, max_uncertainty="2s"), headers=old).status_code == 412
    )
    assert client.delete(path, headers=old).status_code == 412
    assert client.delete(path, headers={"If-Match": second.headers["ETag"]}).status_code == 204


def test_stream_in_use_can_neither_go_nor_be_partitioned_again(service: Service) -> None:
    path, a, b = put_pair(service)
    name = path.rsplit("/", 1)[1]
    client = service.client
    assert problem(client.delete(a), 409, 40901) == [f"conditions.{name}"]
    again = client.put(b, json=stream(service, partitioning={"by": "grid"}))
    assert problem(again, 409, 40901) == [f"conditions.{name}"]
    assert client.put(b, json=stream(service, max_uncertainty="1s")).status_code == 200
    assert client.delete(path).status_code == 204
    assert client.delete(a).status_code == 204


def test_condition_names_streams_that_do_not_fit(service: Service) -> None:
    keyed, grid = put_stream(service), put_stream(service, partitioning={"by": "grid"})
    path, client = f"/v1/conditions/{fresh()}", service.client
    assert problem(client.put(path, json=pair(keyed, "nobody")), 422, 42203) == ["b"]
    assert problem(client.put(path, json=pair("nobody", "no-one")), 422, 42203) == ["a", "b"]
    assert problem(client.put(path, json=pair(keyed, grid)), 422, 42203) == ["b"]
    wrong = pair(keyed, keyed, kind="within", lower_ms=5, upper="2ms")
    del wrong["window"]
    assert problem(client.put(path, json=wrong), 422, 42204) == ["upper"]
    assert client.get(path).status_code == 404


def test_grid_is_written_in_short_and_its_groups_must_be_equal(service: Service) -> None:
    short, three = put_stream(service, partitioning="grid"), {"by": "grid", "groups": 3}
    client = service.client
    stored = client.get(f"/v1/streams/{short}").json()["document"]["partitioning"]
    assert stored == {"by": "grid", "groups": 1}
    a, b, path = (
        put_stream(service, partitioning=three),
        put_stream(service, partitioning=three),
        f"/v1/conditions/{fresh('c')}",
    )
    assert problem(client.put(path, json=pair(short, b)), 422, 42203) == ["b"]
    best = client.put(path, json=pair(a, b, emit="best"))
    assert problem(best, 422, 42203) == ["emit"]
    assert "use emit pairs" in best.json()["errors"][0]["remedy"]
    assert client.put(path, json=pair(a, b)).status_code == 201
    plan = client.get(f"{path}/plan").json()["partitioning"]
    assert (plan["groups"], plan["cells"], plan["copies"]) == (3, 6, 3)
    body = {"condition": pair(a, b), "rates": {a: 100, b: 100}}
    derived = client.post("/v1/conditions:validate", json=body).json()["derived"]
    seconds = {name: us / 1e6 for name, us in derived["buffer_horizon_us"].items()}
    expected = {name: round(3 * 100 * seconds[name]) for name in (a, b)}
    assert derived["expected_buffered_events"] == expected
    again = client.put(f"/v1/streams/{a}", json=stream(service, partitioning="grid"))
    assert problem(again, 409, 40901) == [path.replace("/v1/", "").replace("/", ".")]


def test_pause_and_resume_are_idempotent_and_keep_the_version(service: Service) -> None:
    path, _, _ = put_pair(service)
    client = service.client
    before = head(service)
    for _ in range(2):
        answer = client.put(f"{path}/pause")
        assert (answer.status_code, answer.json()["paused"]) == (202, True)
        assert answer.headers["Location"] == f"{path}/status"
        assert head(service) == before + WRITE
    assert client.get(f"{path}/status").json()["paused"] is True
    for _ in range(2):
        answer = client.put(f"{path}/resume")
        assert (answer.status_code, answer.json()["paused"]) == (202, False)
        assert head(service) == before + 2 * WRITE
    assert client.get(path).json()["version"] == 1
    assert problem(client.put("/v1/conditions/none/pause"), 404, 40401) == []


def test_pause_and_resume_obey_preconditions_and_dry_runs(service: Service) -> None:
    path, _, _ = put_pair(service)
    client = service.client
    tag = client.get(path).headers["ETag"]
    before = head(service)
    answer = client.put(f"{path}/pause?dry_run=true", headers={"If-Match": tag})
    assert (answer.status_code, answer.json()["paused"], head(service)) == (202, True, before)
    assert client.get(path).json()["paused"] is False
    answer = client.put(f"{path}/pause", headers={"If-Match": tag})
    assert (answer.status_code, answer.headers["ETag"] != tag) == (202, True)
    for other in (f"{path}/resume", f"{path}/pause"):
        problem(client.put(other, headers={"If-Match": tag}), 412, 41201)
    problem(client.put("/v1/conditions/none/pause", headers={"If-Match": "*"}), 412, 41201)
    assert client.get(path).json()["paused"] is True
    assert head(service) == before + WRITE


def test_change_of_a_paused_condition_leaves_it_paused(service: Service) -> None:
    path, _, _ = put_pair(service)
    client = service.client
    document = client.put(f"{path}/pause").json()["document"]
    answer = client.put(path, json={**document, "threshold": "0.9"})
    assert (answer.status_code, answer.json()["paused"], answer.json()["version"]) == (200, True, 2)


def test_document_that_is_read_can_be_put_back(service: Service) -> None:
    path, a, _ = put_pair(service)
    for found in (path, a):
        read = service.client.get(found)
        again = service.client.put(found, json=read.json()["document"])
        assert (again.status_code, again.headers["ETag"]) == (200, read.headers["ETag"])


def test_lists_page_by_name(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        assert client.get("/v1/streams").json() == {"items": [], "next": None}
        for name in ("b", "d", "a", "c", "e"):
            client.put(f"/v1/streams/{name}", json=stream(service))
        pages, after = [], ""
        while True:
            page = client.get("/v1/streams", params={"limit": 2, "after": after}).json()
            pages.append([it["name"] for it in page["items"]])
            if page["next"] is None:
                break
            after = page["next"]
        assert pages == [["a", "b"], ["c", "d"], ["e"]]
        assert problem(client.get("/v1/streams?limit=0"), 422, 42202) == ["limit"]


def test_plan_and_status_of_a_condition(service: Service) -> None:
    path, a, b = put_pair(service)
    plan = service.client.get(f"{path}/plan").json()
    assert plan["algorithm"] == "lazy_lookup"
    assert plan["regions"]
    assert set(plan["keep"]) == {it.rsplit("/", 1)[1] for it in (a, b)}
    status = service.client.get(f"{path}/status").json()
    assert (status["state"], status["applied"], status["alarms"]) == ("pending", False, 0)
    assert set(status["streams"]) == set(plan["keep"])
    assert problem(service.client.get("/v1/conditions/none/status"), 404, 40401) == []
    assert problem(service.client.get("/v1/conditions/none/plan"), 404, 40401) == []


def test_validate_derives_numbers_and_writes_nothing(service: Service) -> None:
    a, b = put_stream(service), put_stream(service)
    before = head(service)
    body = {"condition": pair(a, b), "rates": {a: 100, b: 0.5}}
    answer = service.client.post("/v1/conditions:validate", json=body).json()
    assert (answer["valid"], answer["errors"]) == (True, [])
    assert answer["document"]["window_us"] == 2_000_000
    derived = answer["derived"]
    assert derived["worst_case_alarm_latency_us"] == 1_000_000
    assert derived["buffer_horizon_us"][a] > 2_000_000
    assert derived["expected_buffered_events"][a] > 200
    assert derived["chance_alarms_per_hour"] > 0
    keyed = service.client.post("/v1/conditions:validate", json={**body, "keys": 10}).json()
    alarms = derived["chance_alarms_per_hour"] / 10
    assert keyed["derived"]["chance_alarms_per_hour"] == pytest.approx(alarms)
    assert head(service) == before


@pytest.mark.parametrize("keys", [0, 0.5, "10", None, 1e13])
def test_validate_takes_no_other_number_of_keys(service: Service, keys: object) -> None:
    a = put_stream(service)
    answer = service.client.post(
        "/v1/conditions:validate", json={"condition": pair(a, a), "keys": keys}
    )
    assert problem(answer, 422, 42202) == ["keys"]


def test_validate_names_rates_of_streams_that_are_not_read(service: Service) -> None:
    a, b = put_stream(service), put_stream(service)
    body = {"condition": pair(a, b), "rates": {a: 3, "acoustik": 3}}
    answer = service.client.post("/v1/conditions:validate", json=body).json()
    (error,) = answer["errors"]
    assert (answer["valid"], error["field"]) == (False, "rates.acoustik")
    assert error["remedy"] == f"use {', '.join(sorted((a, b)))}"


def test_validate_lists_what_is_wrong_field_by_field(service: Service) -> None:
    a, b = put_stream(service), put_stream(service)
    for condition, fields in (
        (pair(a, a, windw=1, threshold=2), ["threshold", "windw"]),
        (pair(a, "nobody"), ["b"]),
        ({}, ["kind"]),
        (pair(a, a) | {"window": "-2s"}, ["window"]),
        (pair(a, a, output="factored"), ["output"]),
        (pair(a, b, output="factored", emit="best"), ["emit"]),
        (pair(a, b, output="factored", algorithm="simple"), ["algorithm"]),
        (pair(a, b, output="factored"), []),
    ):
        answer = service.client.post("/v1/conditions:validate", json={"condition": condition})
        assert answer.status_code == 200
        assert answer.json()["valid"] is not bool(fields)
        assert sorted(it["field"] for it in answer.json()["errors"]) == fields


def test_rejected_writes_are_never_produced(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        client.put("/v1/streams/s", json=stream(service))
        client.put("/v1/streams/s", json={})
        client.put(
            "/v1/streams/s", json=stream(service, max_uncertainty="1s"), headers={"If-Match": '"9"'}
        )
        client.put("/v1/conditions/c", json=pair("s", "t"))
        client.delete("/v1/streams/t")
        client.put("/v1/conditions/c", json=pair("s", "s"))
        client.delete("/v1/streams/s")
        config = read_committed(kafka_bootstrap, service.settings.topics.config)
    assert [it.key for it in config] == [b"stream/s", b"condition/c"]


def test_write_that_is_not_read_back_in_time_says_202_and_where(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        # The log is empty before the write.
        monkeypatch.setattr("service.log.TopicLog.wait_for", lambda _, offset, __: offset < 0)
        answer = service.client.put("/v1/streams/s", json=stream(service))
        assert (answer.status_code, answer.headers["Location"]) == (202, "/v1/streams/s")
        config = read_committed(
            kafka_bootstrap, service.settings.topics.config, until=lambda found: len(found) == 1
        )
        assert config[0].key == b"stream/s"


def test_answer_names_what_every_check_finds(service: Service) -> None:
    own, known = service.settings.topics.config, put_stream(service)
    within = {"kind": "within", "lower": "3s", "upper": "1s"}
    reversed_ends = {k: v for k, v in pair("nobody", known, **within).items() if k != "window"}
    for document, error_code, fields in (
        (pair("nobody", known, output_topic=own), 42203, ["a", "output_topic"]),
        (reversed_ends, 42203, ["a", "upper"]),
        (reversed_ends | {"threshold": 1.2}, 42202, ["threshold", "a", "upper"]),
    ):
        answer = service.client.put(f"/v1/conditions/{fresh('c')}", json=document)
        assert problem(answer, 422, error_code) == fields
    document = stream(service, topic=own, templates=["nobody"], max_skew="-1s")
    answer = service.client.put(f"/v1/streams/{fresh()}", json=document)
    assert problem(answer, 422, 42203) == ["templates[0]", "max_skew", "topic"]
