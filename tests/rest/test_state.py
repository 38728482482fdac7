"""Health, metrics and the job's state, on a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from prometheus_client.parser import text_string_to_metric_families

from correlation.engine.contract import ContractFacts, declaration
from correlation.resources.streams import Stream
from service.plane import JOB_SILENCE_US
from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import Sent, create_topics, produce
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    import httpx

    from cli.stack.broker import EmbeddedBroker

pytestmark = pytest.mark.kafka
# Far in the future, so that the job counts as alive for the whole run.
AT_US = 4_000_000_000_000_000


def samples(client: httpx.Client) -> dict[str, float]:
    """Read the Prometheus page: `name{label=value}` to number."""
    found = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def say(service: Service, key: bytes, **record: Any) -> None:  # noqa: ANN401  JSON
    value = orjson.dumps({"v": 1, **record})
    produce(service.settings.bootstrap, service.settings.topics.metrics, [Sent(value, key)])


def test_own_topics_are_created_with_the_right_settings(service: Service) -> None:
    settings, topics = service.settings, service.settings.topics
    admin = AdminClient({"bootstrap.servers": settings.bootstrap})
    found = admin.list_topics(timeout=PATIENCE_SECONDS).topics
    partitions = {name: len(found[name].partitions) for name in topics.all()}
    assert partitions == {
        topics.config: 1,
        topics.metrics: 1,
        topics.state: 1,
        topics.heartbeats: 1,
        topics.audit: 1,
        topics.alarms: 2,
        topics.late: 2,
        topics.dead_letter: 2,
        topics.channel_topic("topk"): 2,
        topics.channel_topic("topk.current"): 1,
    }
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics.all()]
    described = {
        resource.name: future.result(PATIENCE_SECONDS)
        for resource, future in admin.describe_configs(resources).items()
    }
    policies = {name: it["cleanup.policy"].value for name, it in described.items()}
    assert {name for name, it in policies.items() if it == "compact"} == {
        topics.config,
        topics.metrics,
        topics.state,
        topics.channel_topic("topk.current"),
    }
    present = topics.channel_topic("topk.current")
    for name in (topics.late, topics.dead_letter, topics.state, present):
        assert int(described[name]["max.message.bytes"].value) > 10_000_000


def test_existing_topics_are_reported_not_changed(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    create_topics(kafka_bootstrap, {settings.topics.config: 1}, {"cleanup.policy": "delete"})
    create_topics(kafka_bootstrap, {settings.topics.dead_letter: 3})
    for _ in range(2):
        with running(settings) as service:
            found = readiness(service.client)["topic_problems"]
            assert [(it["topic"], it["setting"]) for it in found] == [
                (settings.topics.config, "cleanup.policy"),
                (settings.topics.config, "delete.retention.ms"),
                (settings.topics.config, "max.message.bytes"),
                (settings.topics.dead_letter, "max.message.bytes"),
            ]
            assert (found[0]["found"], found[0]["needed"]) == ("delete", "compact")


def test_ready_when_the_registry_has_caught_up(service: Service) -> None:
    found = readiness(service.client)
    assert (found["ready"], found["topic_problems"]) == (True, [])
    assert service.client.get("/livez").json() == {"live": True}


def test_metrics_are_summed_over_the_slots(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        assert client.get("/v1/job").json()["state"] == "unknown"
        assert samples(client)["coincide_job_up{}"] == 0
        for number, mark in ((0, 7_000_000), (1, 5_000_000)):
            say(
                service,
                f"slot/{number}".encode(),
                slot=number,
                at=AT_US,
                counters=[
                    ["alarms_total", {"condition": "c"}, 2],
                    ["probe_region_events_total", {"condition": "c"}, 8],
                    ["lookup_hits_total", {"condition": "c"}, 6],
                    ["events_late_total", {"stream": "s"}, 1],
                ],
                gauges=[["buffered_events", {"stream": "s"}, 10]],
                histograms=[
                    [
                        "response_time_seconds",
                        {"condition": "c"},
                        {"buckets": [[0.5, 1], ["+Inf", 2]], "sum": 1.5},
                    ]
                ],
                conditions={
                    "c": {"version": 1, "state": "running", "config_offset": 2, "last_alarm_at": 9}
                },
                watermarks={"s": {"watermark": mark, "partitions": {"0": mark}}},
            )
        say(
            service,
            b"job",
            query_id="q",
            batch=12,
            state="running",
            input_rate=3.5,
            lag={"t": {"0": 4, "1": 5}},
            lost={"t": {"0": 2, "1": 1}},
            missing_topics=[f"{service.settings.prefix}-mine"],
            recreated_topics={"t": {"former_id": "one", "id": "two", "at": 7_000_000}},
            durations={"commit": 0.25},
            exception=None,
            at=AT_US,
            applied_config_offset=1,
        )
        wait_until(lambda: client.get("/v1/job").json()["state"] == "running")
        found = samples(client)
        expected = {
            "coincide_alarms_total{condition=c}": 4,
            "coincide_lookup_hit_ratio{condition=c}": 0.75,
            "coincide_buffered_events{stream=s}": 20,
            "coincide_watermark_timestamp_seconds{stream=s}": 5,
            "coincide_response_time_seconds_bucket{condition=c,le=0.5}": 2,
            "coincide_response_time_seconds_bucket{condition=c,le=+Inf}": 4,
            "coincide_response_time_seconds_count{condition=c}": 4,
            "coincide_response_time_seconds_sum{condition=c}": 3,
            "coincide_batch_duration_seconds{phase=commit}": 0.25,
            "coincide_consumer_lag_records{}": 9,
            "coincide_records_lost_total{}": 3,
            "coincide_missing_output_topics{}": 1,
            "coincide_event_topic_recreated_timestamp_seconds{topic=t}": 7,
            # The newest record of an empty topic has the offset -1.
            "coincide_config_applied_offset{}": -1,
            "coincide_config_head_offset{}": -1,
            "coincide_job_up{}": 1,
        }
        assert {name: found[name] for name in expected} == expected
        assert found["coincide_http_request_duration_seconds_count{}"] > 1
        job = client.get("/v1/job").json()
        assert (job["up"], job["batch"], job["lag"]) == (True, 12, {"t": {"0": 4, "1": 5}})
        recreated = {"former_id": "one", "id": "two", "at": 7_000_000}
        assert job["recreated_topics"] == {"t": recreated}
        events = f"{service.settings.prefix}-events"
        document = {"topic": events, "max_uncertainty": "1s", "max_delay": "1s"}
        client.put("/v1/streams/s", json=document)
        pair = {"kind": "mutual_deadline", "a": "s", "b": "s", "window": "1s", "threshold": 1}
        mine = f"{service.settings.prefix}-mine"
        client.put("/v1/conditions/c", json=pair | {"output_topic": mine})
        assert job["missing_topics"] == [mine]
        now = client.get("/v1/job").json()
        assert (now["applied_config_offset"], now["config_head_offset"]) == (1, 2)
        status = client.get("/v1/conditions/c/status").json()
        assert f"topic {mine} does not exist" in status["detail"]
        assert status["streams"]["s"] == {
            "watermark": 5_000_000,
            "partitions": {"0": 5_000_000},
            "buffered_events": 20,
            "late_events": 2,
        }
        assert (status["state"], status["applied"], status["job_up"]) == ("running", True, True)
        assert (status["hit_ratio"], status["alarms"], status["last_alarm_at"]) == (0.75, 4, 9)
        client.put("/v1/conditions/c/pause")
        assert client.get("/v1/conditions/c/status").json()["applied"] is False


def test_status_has_the_gauges_of_the_kind(kafka_bootstrap: str) -> None:
    texts: dict[str, Any] = {"max_uncertainty": "0s", "max_delay": "0s", "tokens": "tokens"}
    texts["partitioning"] = {"by": "grid"}
    alike = {"kind": "topk_similarity", "a": "s", "k": 3, "similarity": "jaccard", "window": "1h"}
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        texts |= {"topic": f"{service.settings.prefix}-texts"}
        assert client.put("/v1/streams/s", json=texts).status_code == 201
        for name in ("alike", "other"):
            assert client.put(f"/v1/conditions/{name}", json=alike).status_code == 201
        gauges = [["topk_stock_pairs", {"condition": "alike"}, 7], ["buffered_events", {}, 9]]
        say(service, b"slot/0", slot=0, slots=1, at=AT_US, gauges=gauges)

        def found(name: str) -> object:
            return client.get(f"/v1/conditions/{name}/status").json()["gauges"]

        wait_until(lambda: found("alike") != {})
        assert found("alike") == {"topk_stock_pairs": 7}
        assert found("other") == {}


def test_status_says_that_blocks_had_more_pairs_than_the_limit(kafka_bootstrap: str) -> None:
    pair = {"kind": "mutual_deadline", "a": "s", "b": "s", "window": "2s", "threshold": "0.6"}
    documents = {"limited": pair | {"max_pairs": 5}, "unlimited": pair}
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        stream = {"topic": "s", "max_uncertainty": "2s", "max_delay": "1s"}
        assert client.put("/v1/streams/s", json=stream).is_success
        for name, document in documents.items():
            assert client.put(f"/v1/conditions/{name}", json=document).is_success

        def detail(name: str) -> str | None:
            found: str | None = client.get(f"/v1/conditions/{name}/status").json()["detail"]
            return found

        assert [detail(name) for name in documents] == [None, None]
        counters = [["limited_blocks_total", {"condition": name}, 3] for name in documents]
        say(service, b"slot/0", slot=0, slots=1, at=AT_US, counters=counters)
        wait_until(lambda: detail("limited") is not None)
        assert_names(detail("limited"), "3 blocks", "max_pairs")
        assert detail("unlimited") is None


def test_samples_of_a_metric_may_have_different_labels(service: Service) -> None:
    say(
        service,
        b"slot/0",
        slot=0,
        at=AT_US,
        counters=[
            ["alarms_total", {"condition": "c"}, 2],
            ["alarms_total", {"condition": "d", "room": "r"}, 3],
            ["alarms_total", {"zone": "z"}, 4],
        ],
        gauges=[],
        histograms=[],
        conditions={},
        watermarks={},
    )
    expected = {
        "coincide_alarms_total{condition=c,room=,zone=}": 2,
        "coincide_alarms_total{condition=d,room=r,zone=}": 3,
        "coincide_alarms_total{condition=,room=,zone=z}": 4,
    }
    wait_until(lambda: "coincide_alarms_total" in service.client.get("/metrics").text)
    found = samples(service.client)
    assert {name: it for name, it in found.items() if "alarms_total" in name} == expected


def test_status_of_a_stream_sets_what_was_seen_beside_what_is_declared(
    kafka_bootstrap: str,
) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        client = service.client
        document = {"topic": f"{service.settings.prefix}-events", "max_uncertainty": "2s"}
        client.put("/v1/streams/s", json={**document, "max_delay": "10s"})
        fresh = client.get("/v1/streams/s/status").json()
        assert fresh["declared"] == {
            "min_uncertainty_us": 0,
            "max_uncertainty_us": 2_000_000,
            "max_delay_us": 10_000_000,
            "max_skew_us": 1_000_000,
            "clock": "live",
            "templates": {},
            "histograms": False,
            "attributes": {},
            "where": None,
            "tokens": None,
        }
        assert fresh["seen"]["events"] == 0
        (advice,) = fresh["advice"]
        assert_names(advice, "no event")
        stream = Stream("s", "s", max_uncertainty_us=2_000_000, max_delay_us=10_000_000)
        lengths = np.tile([100_000, 1_980_000], 500)
        delays = np.append(np.full(990, 400_000), np.full(10, 800_000))
        for number in range(2):
            seen = ContractFacts.of_events(stream, lengths, delays, late=0)
            rejected = ContractFacts(declaration(stream), rejected={"longer_than_declared": 3})
            reason = {"stream": "s", "reason": "longer_than_declared"}
            say(
                service,
                f"slot/{number}".encode(),
                slot=number,
                at=AT_US,
                counters=[
                    ["events_rejected_total", reason, 5],
                    ["events_late_total", {"stream": "s"}, 1],
                ],
                gauges=[["buffered_events", {"stream": "s"}, 10]],
                watermarks={
                    "s": {"watermark": number, "partitions": {"0": number}, "refused_heartbeats": 3}
                },
                contracts={"s": seen.merged(rejected).to_record()},
            )
        wait_until(lambda: client.get("/v1/streams/s/status").json()["seen"]["events"] == 2000)
        report = client.get("/v1/streams/s/status").json()
        assert (report["name"], report["version"], report["job_up"]) == ("s", 1, False)
        assert (report["watermark"], report["partitions"]) == (0, {"0": 0})
        assert (report["buffered_events"], report["late_events"]) == (20, 2)
        assert report["rejected"] == {"longer_than_declared": 10}
        # Every slot gets every heartbeat.
        assert (report["refused_heartbeats"], report["topic_problems"]) == (3, [])
        assert report["seen"]["rejected"] == {"longer_than_declared": 6}
        assert report["seen"]["near_limits"] == {
            "min_uncertainty": 0,
            "max_uncertainty": 0.5,
            "min_length": None,
            "max_length": None,
            "max_delay": 0,
        }
        assert report["seen"]["delays"]["max_us"] == 800_000
        quantiles = {it["share"]: it for it in report["seen"]["delays"]["quantiles"]}
        assert set(quantiles) == {0.5, 0.9, 0.99, 0.999}
        assert quantiles[0.99]["at_most_us"] == 500_000
        rejected, delays, longest = report["advice"]
        assert_names(rejected, "6 records were rejected", "max_uncertainty (2s)")
        assert_names(delays, "99 %", "within 500ms", "slowest took 800ms")
        assert_names(longest, "longest", "1.98s", "max_uncertainty is 2s", "50 %")
        found = samples(client)
        expected = {
            "coincide_declared_seconds{limit=max_delay,stream=s}": 10,
            "coincide_declared_seconds{limit=min_uncertainty,stream=s}": 0,
            "coincide_interval_length_min_seconds{stream=s}": 0.1,
            "coincide_interval_length_max_seconds{stream=s}": 1.98,
            "coincide_transmission_delay_min_seconds{stream=s}": 0.4,
            "coincide_transmission_delay_max_seconds{stream=s}": 0.8,
            "coincide_near_limit_ratio{limit=max_uncertainty,stream=s}": 0.5,
            "coincide_near_limit_ratio{limit=max_delay,stream=s}": 0,
        }
        assert {name: found[name] for name in expected} == expected
        # Under another declaration what was seen begins again.
        client.put("/v1/streams/s", json={**document, "max_delay": "2s"})
        report = client.get("/v1/streams/s/status").json()
        assert (report["seen"]["events"], report["seen"]["delays"]) == (0, None)
        assert report["rejected"] == {"longer_than_declared": 10}
        # Every slot gets every heartbeat.
        assert (report["refused_heartbeats"], report["topic_problems"]) == (3, [])
        assert "coincide_near_limit_ratio{limit=max_uncertainty,stream=s}" not in samples(client)
        answer = client.get("/v1/streams/nobody/status")
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)


def test_job_that_has_long_been_silent_is_not_up(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        now_us = service.client.get("/v1/job").json()["at"]
        assert now_us is None
        long_ago_us = 1_000_000_000_000_000
        assert long_ago_us + JOB_SILENCE_US < AT_US
        say(service, b"job", state="running", at=long_ago_us)
        wait_until(lambda: service.client.get("/v1/job").json()["at"] == long_ago_us)
        assert service.client.get("/v1/job").json()["up"] is False


def test_metrics_record_that_cannot_be_read_is_counted(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap)) as service:
        topic = service.settings.topics.metrics
        produce(kafka_bootstrap, topic, [Sent(b"no JSON", b"slot/0"), Sent(b"{}", b"job")])
        name = "coincide_metrics_records_unreadable_total{}"
        wait_until(lambda: samples(service.client)[name] == 2)


def test_not_ready_and_no_writes_while_the_broker_is_away(own_broker: EmbeddedBroker) -> None:
    settings = fresh_settings(own_broker.bootstrap, broker_timeout_seconds=10)
    with running(settings) as service:
        client = service.client
        document = {"topic": "events", "max_uncertainty": "1s", "max_delay": "1s"}
        assert client.put("/v1/streams/s", json=document).status_code == 201
        own_broker.stop()
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["error_code"]) == (503, 50303)
        assert answer.headers["content-type"] == "application/problem+json"
        answer = client.put("/v1/streams/t", json=document)
        assert (answer.status_code, answer.json()["error_code"]) == (503, 50301)
        assert answer.headers["Retry-After"]
        # Earlier registrations can still be read.
        assert client.get("/v1/streams/s").status_code == 200
        assert client.get("/livez").status_code == 200
        own_broker.start()
        readiness(client)
        assert client.put("/v1/streams/t", json=document).status_code == 201
