"""Service and job go on after the broker has reported that no broker is alive.

The only broker of a cluster does so after a pause that was longer than its session.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cli.stack.broker import HOST, EmbeddedBroker, free_port
from correlation.resources.streams import Stream
from service.settings import Settings
from tests.rest.running import running
from tests.support.hidden_brokers import HidingProxy
from tests.support.job import JobUnderTest
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS, wait_until
from tests.support.proxy import listeners_of
from tests.support.service_reports import readiness, wait_until_running
from tests.support.workload import NearCondition, Occurrence

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

PREFIX = "lost"
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
MAX_UNCERTAINTY_US = 20_000
# Responses without a broker: two or more for each client of service and job.
HIDDEN = 50


def test_service_and_job_go_on_after_no_broker_was_reported(tmp_path: Path) -> None:
    port = free_port()
    proxy = HidingProxy(free_port())
    broker = EmbeddedBroker(tmp_path / "broker", port, properties=listeners_of(proxy, port))
    # Only service and job use the proxy.
    hidden = f"{HOST}:{proxy.port}"
    settings = Settings(bootstrap=hidden, prefix=PREFIX)
    path = "/v1/conditions/later"
    with proxy, broker, running(settings) as service:
        client = service.client
        job = JobUnderTest(
            broker.bootstrap, PREFIX, tmp_path, {"COINCIDE_BOOTSTRAP": hidden}, has_topics=True
        )
        for name in (NEAR.a, NEAR.b):
            job.add_stream(Stream(name, f"{PREFIX}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
        job.register(NEAR.resource)
        job.start()
        try:
            first = pairs("first")
            job.send(first)
            job.alarms(NEAR.name, awaited=NEAR.pairs(first))
            wait_until(lambda: shows(client, NEAR.pairs(first)))
            hide(proxy)
            second = pairs("second")
            job.send(second)
            found = job.alarms(NEAR.name, awaited=NEAR.pairs(second))
            assert found == sorted(NEAR.pairs([*first, *second]))
            wait_until(lambda: shows(client, NEAR.pairs(second)))
            assert readiness(client)["ready"]
            # The service creates a topic and writes; the job reads the records and reports.
            stream = {"topic": f"{PREFIX}-c", "max_uncertainty": "1s", "max_delay": "1s"}
            wait_until(lambda: client.put("/v1/streams/c", json=stream).is_success)
            condition = {"kind": "mutual_deadline", "a": "a", "b": "c", "window": "1s"}
            wait_until(lambda: client.put(path, json=condition | {"threshold": 0.5}).is_success)
            wait_until_running(client, path, {"a", "c"})
        finally:
            job.process.stop(PATIENCE_SECONDS)


def pairs(name: str) -> list[Occurrence]:
    """Return events of this moment that match in pairs."""
    latest = time.time_ns() // 1_000
    return [
        Occurrence(stream, f"{stream}.{name}{i}", f"{name}{i}", latest - MAX_UNCERTAINTY_US, latest)
        for i in range(10)
        for stream in (NEAR.a, NEAR.b)
    ]


def shows(client: httpx.Client, awaited: set[tuple[str, str, str]]) -> bool:
    """Return whether the service shows these alarms."""
    items = client.get("/v1/alarms", params={"limit": 100}).json()["items"]
    alarms = [it["record"] for it in items]
    return awaited <= {(it["condition"], it["a"]["id"], it["b"]["id"]) for it in alarms}


def hide(proxy: HidingProxy) -> None:
    """Reset all connections, and hide the broker from the clients that connect again."""
    proxy.hides = True
    before = proxy.hidden
    proxy.reset()
    wait_until(lambda: proxy.hidden >= before + HIDDEN)
    proxy.hides = False
