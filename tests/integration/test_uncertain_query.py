"""An event query on uncertain instants through Kafka and Spark: restarts, a change, and a pause."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from correlation.engine.heartbeats import Heartbeat, heartbeat_to_record
from tests.support.command import coincide, running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"uncertain{uuid.uuid4().hex[:10]}"
MINUTE = 60_000_000
QUERY = """\
DETECT Unreported {area {var X}}
ON event a: Leak {area {var X}}
   not event r: Report {area {var X}}
WHERE a.rt.end <= r.rt.end, r.rt.end <= a.rt.end + 5 min
END"""
CONDITION = {"kind": "event_query", "query": QUERY, "threshold": "0.5"}
PATH = "/v1/conditions/unreported"
STREAMS = {
    name: {
        "topic": f"{PREFIX}-{name}",
        "max_uncertainty": uncertainty,
        "max_delay": "1min",
        "clock": "replay",
        "partitioning": "grid",
        "attributes": {"area": "area"},
    }
    for name, uncertainty in (("leak", "10min"), ("report", "0s"))
}
# Id, probability, threshold and version of each result.
Result = tuple[str, float, float, int]


def leak(name: str, minute: int) -> dict[str, Any]:
    """Return a leak of the ten minutes from a minute on."""
    times = {"earliest": minute * MINUTE, "latest": (minute + 10) * MINUTE}
    return {"id": name, "area": "lab", **times}


def report(minute: int) -> dict[str, Any]:
    """Return a report of a minute."""
    return {"id": f"r{minute}", "area": "lab", "earliest": minute * MINUTE} | {
        "latest": minute * MINUTE
    }


def send(job: JobUnderTest, *events: dict[str, Any]) -> None:
    """Send events to the topic of their stream: ids of reports begin with r."""
    for stream in STREAMS:
        mine = [it for it in events if it["id"].startswith("r") == (stream == "report")]
        sent = [Sent(json.dumps(it).encode()) for it in mine]
        produce(job.bootstrap, str(STREAMS[stream]["topic"]), sent)


def reach(job: JobUnderTest, client: httpx.Client, minute: int) -> None:
    """Set the watermarks of both streams to a minute, and wait until the job has done so."""
    beats = [Heartbeat(name, None, (minute + 1) * MINUTE, None) for name in STREAMS]
    values = [Sent(json.dumps(heartbeat_to_record(it)).encode()) for it in beats]
    produce(job.bootstrap, job.topics.heartbeats, values)

    def reached() -> bool:
        streams = client.get(f"{PATH}/status").json()["streams"].values()
        return all((it["watermark"] or 0) >= minute * MINUTE for it in streams)

    wait_until(reached)


def applied(client: httpx.Client, state: str) -> None:
    """Wait until the job has applied the newest record of the condition."""

    def holds() -> bool:
        status = client.get(f"{PATH}/status").json()
        return bool(status["applied"]) and status["state"] == state

    wait_until(holds)


def read_results(job: JobUnderTest, count: int) -> list[Result]:
    """Return the results in the order of their events, once the topic has the number of them."""
    records = job.read(job.topics.alarms, lambda found: len(found) >= count)
    found = [json.loads(it.value or b"") for it in records]
    assert {it["attributes"]["area"] for it in found} == {"lab"}
    # The probabilities are float64, for display.
    return sorted(
        (it["events"]["a"]["id"], round(it["probability"], 9), it["threshold"], it["version"])
        for it in found
    )


def test_results_have_their_probability_through_restarts_a_change_and_a_pause(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path)
    create_topics(kafka_bootstrap, {str(it["topic"]): 1 for it in STREAMS.values()})
    with (
        running_service(kafka_bootstrap, PREFIX, tmp_path) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client,
    ):
        for name, document in STREAMS.items():
            assert client.put(f"/v1/streams/{name}", json=document).status_code == 201
        assert client.put(PATH, json=CONDITION).status_code == 201
        try:
            job.start()
            check_restarts(job, client)
            check_change(job, client)
            check_pause(job, client)
        finally:
            job.process.stop(5)
        check_commands(
            {
                "COINCIDE_URL": url,
                "COINCIDE_BOOTSTRAP": kafka_bootstrap,
                "COINCIDE_PREFIX": PREFIX,
            },
            client,
        )


RESTARTED: list[Result] = [("a1", 0.7, 0.5, 1), ("a2", 0.5, 0.5, 1)]
CHANGED: list[Result] = [*RESTARTED, ("a4", 0.4, 0.3, 2)]
RESUMED: list[Result] = [*CHANGED, ("a6", 1.0, 0.3, 2)]


def check_restarts(job: JobUnderTest, client: httpx.Client) -> None:
    """Check results that are open during a stop and a kill: reports follow after each."""
    send(job, leak("a1", 0), leak("a2", 20), leak("a3", 40))
    reach(job, client, 5)
    assert job.stop() == 0
    job.start()
    send(job, report(12), report(25))
    reach(job, client, 6)
    job.kill()
    job.start()
    send(job, report(44), report(46))
    reach(job, client, 60)
    # The probability of a3 is 0.4.
    assert read_results(job, len(RESTARTED)) == RESTARTED


def check_change(job: JobUnderTest, client: httpx.Client) -> None:
    """Check a smaller threshold: it holds for later results only."""
    assert client.put(PATH, json=CONDITION | {"threshold": "0.3"}).status_code == 200
    applied(client, "running")
    send(job, leak("a4", 70), report(74), report(76))
    reach(job, client, 90)
    assert read_results(job, len(CHANGED)) == CHANGED


def check_pause(job: JobUnderTest, client: httpx.Client) -> None:
    """Check that the results of a pause are not reported later."""
    assert client.put(f"{PATH}/pause").status_code == 202
    applied(client, "paused")
    send(job, leak("a5", 100))
    reach(job, client, 120)
    assert client.put(f"{PATH}/resume").status_code == 202
    applied(client, "running")
    send(job, leak("a6", 130))
    reach(job, client, 150)
    assert read_results(job, len(RESUMED)) == RESUMED


def check_commands(environment: dict[str, str], client: httpx.Client) -> None:
    page = client.get("/metrics").text
    assert 'coincide_query_decisions_total{condition="unreported",decided_by="' in page
    tail = coincide("tail", "--from-beginning", "-n", "1", environment=environment)
    assert tail.returncode == 0, tail.stderr
    assert 'Unreported  area="lab"  [' in tail.stdout
    assert "  p=0." in tail.stdout
    explained = coincide("explain", "unreported", "--event", "a=a1", environment=environment)
    assert explained.returncode == 0, explained.stderr
    assert "7/10" in explained.stdout
