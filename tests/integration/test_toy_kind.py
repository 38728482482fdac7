"""A kind of condition from another package works from registration to alarm."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.command import coincide, running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.longest import TOY_KINDS
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS
from tests.support.service_reports import wait_for_metrics, wait_until_running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"toy{uuid.uuid4().hex[:10]}"
PACKAGE = Path(__file__).parents[1] / "toy"
TOPIC = f"{PREFIX}-doors"
STREAM = {"topic": TOPIC, "max_uncertainty": "10s", "max_delay": "1h", "clock": "replay"}
CONDITION = {"kind": "long_event", "stream": "doors", "min_length": "2s"}
SECOND_US = 1_000_000


def event(name: str, length_us: int) -> dict[str, object]:
    return {"id": name, "key": "k", "earliest": 0, "latest": length_us}


EVENTS = [event("short", SECOND_US), event("long", 3 * SECOND_US), event("even", 2 * SECOND_US)]
FOUND = {"long": 3 * SECOND_US, "even": 2 * SECOND_US}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package on the path of the processes that a test starts."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))


def write_events(folder: Path) -> Path:
    file = folder / "events.jsonl"
    file.write_text("".join(json.dumps(it) + "\n" for it in EVENTS))
    return file


def write_resources(folder: Path) -> Path:
    file = folder / "resources.json"
    documents = [
        {"kind": "stream", "name": "doors", **STREAM},
        {"name": "left-open", **CONDITION},
    ]
    file.write_text("---\n".join(json.dumps(it) + "\n" for it in documents))
    return file


def lengths(records: Iterator[dict[str, object]] | list[dict[str, object]]) -> dict[object, object]:
    return {it["id"]: it["length_us"] for it in records}


def test_replay_evaluates_it(tmp_path: Path) -> None:
    alarms = tmp_path / "alarms.jsonl"
    done = coincide(
        "replay",
        *("-f", str(write_resources(tmp_path)), "--events", f"doors={write_events(tmp_path)}"),
        *("--alarms", str(alarms)),
    )
    assert done.returncode == 0, done.stderr
    assert lengths([json.loads(it) for it in alarms.read_text().splitlines()]) == FOUND
    title, row = (it.split() for it in done.stderr.splitlines()[:2])
    assert title == [
        "condition",
        "events",
        "long_events",
        "counted",
        "by",
        "its",
        "operator",
        "late",
        "rejected",
    ]
    assert row == ["left-open", "3", "2", "2", "0", "0"]


def test_service_job_and_commands_take_it(kafka_bootstrap: str, tmp_path: Path) -> None:
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path, kinds=TOY_KINDS)
    with running_service(kafka_bootstrap, PREFIX, tmp_path) as url:
        environment = {
            "COINCIDE_URL": url,
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": PREFIX,
        }
        applied = coincide("apply", "-f", str(write_resources(tmp_path)), environment=environment)
        assert applied.returncode == 0, applied.stderr
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            check_rest(client)
            try:
                job.start()
                check_job(job)
                check_status(client)
                # A restart finds its condition and position again.
                assert job.stop() == 0
                job.start()
                produce(
                    kafka_bootstrap,
                    TOPIC,
                    [Sent(json.dumps(event("later", 5 * SECOND_US)).encode(), b"k")],
                )
                later = {**FOUND, "later": 5 * SECOND_US}
                assert read_results(job, len(later)) == later
                check_alarms(client)
            finally:
                job.process.stop(5)
        check_commands(environment)


def check_rest(client: httpx.Client) -> None:
    path = "/v1/conditions/left-open"
    assert client.get(path).json()["document"]["min_length_us"] == 2 * SECOND_US
    assert client.get(f"{path}/plan").json() == {"compares": "2000000 us"}
    refused = client.put(path, json={**CONDITION, "min_length": "-2s", "stream": "windows"})
    assert refused.status_code == 422
    assert {it["field"] for it in refused.json()["errors"]} <= {"stream", "min_length"}
    valid = client.post("/v1/conditions:validate", json={"condition": CONDITION}).json()
    assert valid["derived"]["buffer_horizon_us"] == {"doors": 0}
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert any("min_length" in it.get("properties", {}) for it in schemas.values())
    described = schemas["ExplainedStep"]["properties"]["step"]["description"]
    assert_names(described, "long_event", "threshold", "too short")


def check_job(job: JobUnderTest) -> None:
    records = [Sent(json.dumps(it).encode(), b"k") for it in EVENTS]
    produce(job.bootstrap, TOPIC, records)
    assert read_results(job, len(FOUND)) == FOUND


def read_results(job: JobUnderTest, count: int) -> dict[object, object]:
    records = job.read(job.topics.alarms, lambda found: len(found) >= count)
    assert len(records) == count
    assert {it.headers["ce_type"] for it in records} == {b"coincide.long_event.v1"}
    return lengths([json.loads(it.value or b"") for it in records])


def check_status(client: httpx.Client) -> None:
    wait_until_running(client, "/v1/conditions/left-open", {"doors"})
    wait_for_metrics(client, "# HELP coincide_long_events_total Events that are long enough.")


def check_alarms(client: httpx.Client) -> None:
    """Follow the live stream from the first result on."""
    headers = {"Accept": "text/event-stream"}
    with client.stream("GET", "/v1/alarms?since=0", headers=headers) as answer:
        shown = (it.removeprefix("data: ") for it in answer.iter_lines() if it.startswith("data: "))
        item = next(json.loads(it) for it in shown if '"long"' in it)
    assert item["description"] == f"id=long  length_us={3 * SECOND_US}"
    items = client.get("/v1/alarms").json()["items"]
    assert item["description"] in [it["description"] for it in items]
    place = f"{item['topic']}/{item['partition']}/{item['offset']}"
    shown = client.get(f"/v1/alarms/{place}").json()
    event = {"id": "long", "earliest": 0, "latest": 3 * SECOND_US}
    assert shown["events"] == [{"label": "long", "event": {"stream": "doors", **event}}]
    assert shown["explain"] == {"condition": "left-open", "body": {"event": {"id": "long"}}}
    answer = client.post("/v1/conditions/left-open/explain", json=shown["explain"]["body"])
    assert answer.json()["verdict"] == "satisfied"


def check_commands(environment: dict[str, str]) -> None:
    tail = coincide("tail", "--from-beginning", "-n", "3", environment=environment)
    assert tail.returncode == 0, tail.stderr
    assert "left-open  id=long  length_us=3000000" in tail.stdout
    asked = json.dumps(EVENTS[0])
    explained = coincide(
        "explain", "left-open", "--event", f"event={asked}", environment=environment
    )
    assert explained.returncode == 1, explained.stderr
    assert "too short" in explained.stdout
    assert "✗ length" in explained.stdout
    assert "EVENT  doors:short @k" in explained.stdout
    assert "\n▇\n▇ is 1s\nshort is 1s long\n" in explained.stdout
    missing = coincide("explain", "left-open", "--a", asked, environment=environment)
    assert missing.returncode != 0
    assert "event: is missing" in missing.stderr
