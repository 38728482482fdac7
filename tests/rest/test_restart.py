"""The config topic is the only storage: killed processes, two readers, foreign records."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import Sent, create_topics, produce, recreate_topic, topic_id
from tests.support.messages import assert_names
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.settings import Settings

pytestmark = pytest.mark.kafka
STREAM = {"max_uncertainty": "200ms", "max_delay": "1s"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def start(settings: Settings, port: int = 0) -> subprocess.Popen[str]:
    """Start the service as a process of its own."""
    variables = {
        "COINCIDE_BOOTSTRAP": settings.bootstrap,
        "COINCIDE_PREFIX": settings.prefix,
        "COINCIDE_PORT": str(port),
        "COINCIDE_BROKER_TIMEOUT_SECONDS": str(settings.broker_timeout_seconds),
        "COINCIDE_WRITE_TIMEOUT_SECONDS": str(settings.write_timeout_seconds),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "service.main"],
        env=os.environ | variables,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def process(settings: Settings) -> Iterator[tuple[Service, subprocess.Popen[str]]]:
    """Run the service as a process; kill it with -9 at the end."""
    port = free_port()
    child = start(settings, port)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
            wait_until(lambda: is_ready(client, child))
            yield Service(settings, client), child
    finally:
        child.kill()
        child.communicate()


def is_ready(client: httpx.Client, child: subprocess.Popen[str]) -> bool:
    assert child.poll() is None, child.communicate()[1]
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False


def everything(service: Service) -> list[object]:
    client = service.client
    return [client.get(f"/v1/{kind}").json()["items"] for kind in ("streams", "conditions")]


def test_everything_is_there_after_kill_9(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    stream = {**STREAM, "topic": f"{settings.prefix}-events"}
    pair = {"kind": "mutual_deadline", "a": "x", "b": "y", "window": "2s", "threshold": 0.7}
    with process(settings) as (service, _):
        for name in ("x", "y", "z"):
            assert service.client.put(f"/v1/streams/{name}", json=stream).status_code == 201
        assert service.client.put("/v1/conditions/c", json=pair).status_code == 201
        service.client.put("/v1/conditions/c/pause")
        service.client.delete("/v1/streams/z")
        tag = service.client.get("/v1/conditions/c").headers["ETag"]
        before = everything(service)
    with process(settings) as (service, _):
        assert everything(service) == before
        assert service.client.get("/v1/conditions/c").headers["ETag"] == tag
        assert service.client.get("/v1/conditions/c").json()["paused"] is True
        assert service.client.put("/v1/conditions/c", json=pair).headers["ETag"] == tag
        assert service.client.put("/v1/streams/z", json=stream).json()["version"] == 2


def test_process_stops_in_order_when_told_to(kafka_bootstrap: str) -> None:
    with process(fresh_settings(kafka_bootstrap)) as (_, child):
        child.terminate()
        assert child.wait(END_SECONDS) in {0, -15}


def test_two_services_see_each_others_writes(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    stream = {**STREAM, "topic": f"{settings.prefix}-events"}
    words = {"topic": stream["topic"], "max_delay": "1s"}
    with running(settings) as one, running(settings) as other:
        one.client.put("/v1/streams/x", json=stream)
        wait_until(lambda: other.client.get("/v1/streams/x").is_success)
        # A write reads to the end first, so it never works on what is out of date.
        for number in range(10):
            writer, reader = (one, other) if number % 2 else (other, one)
            changed = writer.client.put(
                "/v1/streams/x", json={**words, "max_uncertainty_s": number + 1}
            )
            assert (changed.status_code, changed.json()["version"]) == (200, number + 2)
            again = reader.client.put(
                "/v1/streams/x", json={**words, "max_uncertainty_s": number + 1}
            )
            assert again.headers["ETag"] == changed.headers["ETag"]
        assert everything(one) == everything(other)


def test_service_does_not_start_on_a_record_of_a_newer_version(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    topic = settings.topics.config
    create_topics(kafka_bootstrap, {topic: 1}, {"cleanup.policy": "compact"})
    produce(kafka_bootstrap, topic, [Sent(b'{"v": 2, "kind": "stream"}', b"stream/x")])
    child = start(settings)
    _, said = child.communicate(timeout=END_SECONDS)
    assert child.returncode == 1
    assert "the record has version 2" in said
    assert "offset 0" in said
    assert "Traceback" not in said
    # Its tombstone makes it the past, though Kafka may keep the record for a while.
    produce(kafka_bootstrap, topic, [Sent(None, b"stream/x")])
    with process(settings) as (service, _):
        assert service.client.get("/v1/streams").json()["items"] == []


def test_service_stops_loudly_when_such_a_record_arrives(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with process(settings) as (_, child):
        produce(kafka_bootstrap, settings.topics.config, [Sent(b'{"v": 9}', b"stream/x")])
        _, said = child.communicate(timeout=END_SECONDS)
        assert child.returncode == 1
        assert "record has version 9" in said.splitlines()[-1]


@pytest.mark.parametrize("records", [0, 3], ids=["empty", "as_long_as_before"])
def test_service_stops_when_its_config_topic_is_created_again(
    kafka_bootstrap: str, records: int
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    topic = settings.topics.config
    with process(settings) as (service, child):
        stream = {**STREAM, "topic": f"{settings.prefix}-events"}
        for name in ("x", "y", "z"):
            service.client.put(f"/v1/streams/{name}", json=stream)
        former = topic_id(kafka_bootstrap, topic)
        recreate_topic(kafka_bootstrap, topic, 1, {"cleanup.policy": "compact"})
        # Tombstones: records that a service can read.
        produce(kafka_bootstrap, topic, [Sent(None, b"stream/none")] * records)
        _, said = child.communicate(timeout=END_SECONDS)
        assert child.returncode == 1
        for part in (topic, former, topic_id(kafka_bootstrap, topic), "restart the service"):
            assert part in said.splitlines()[-1]
    with process(settings) as (service, _):
        assert service.client.get("/v1/streams").json()["items"] == []


def test_service_says_that_it_cannot_reach_the_broker() -> None:
    settings = fresh_settings(f"127.0.0.1:{free_port()}", broker_timeout_seconds=1)
    child = start(settings)
    _, said = child.communicate(timeout=END_SECONDS)
    assert child.returncode == 1
    assert_names(said, "Kafka", settings.bootstrap)
    assert "Traceback" not in said


def test_service_says_that_its_port_is_taken(kafka_bootstrap: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        child = start(fresh_settings(kafka_bootstrap), port)
        _, said = child.communicate(timeout=END_SECONDS)
    assert child.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith(f"coincide: port {port} on 127.0.0.1 is in use; ")
    assert_names(line, "COINCIDE_PORT", "COINCIDE_HOST")
