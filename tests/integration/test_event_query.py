"""The running example, and a query of events that last: from REST to results, through a kill."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.command import coincide, running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"query{uuid.uuid4().hex[:10]}"
MINUTE = 60_000_000
QUERY = """\
DETECT Alarm {area {var X}, rule {"no report"}}
ON event s: Smoke {area {var X}, level {>= 2}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin,
      r.rt.begin <= s.rt.end + 5 min
END"""
LASTING = """\
DETECT Unattended {area {var X}, rule {"no visit"}}
ON event s: Smoke {area {var X}}
   not event v: Visit {area {var X}}
WHERE v.rt.begin <= s.rt.end, s.rt.end <= v.rt.end
END"""
QUERIES = {"unreported": QUERY, "unattended": LASTING}
ATTRIBUTES = {"area": "area", "level": {"path": "level", "type": "integer"}}
STREAMS: dict[str, dict[str, Any]] = {
    name: {
        "topic": f"{PREFIX}-{name}",
        "max_uncertainty": "0s",
        "max_delay": "1h",
        "clock": "replay",
        "partitioning": "grid",
        "attributes": ATTRIBUTES,
    }
    for name in ("smoke", "report")
} | {
    "visit": {
        "topic": f"{PREFIX}-visit",
        "mapping": {"id": "id", "begin": "from", "end": "to", "format": "epoch_us"},
        "max_length": "1h",
        "max_delay": "1h",
        "clock": "replay",
        "partitioning": "grid",
        "attributes": {"area": "area"},
    }
}


def event(name: str, minute: int, area: str = "lab", level: int = 3) -> dict[str, Any]:
    return {"id": name, "time": minute * MINUTE, "area": area, "level": level}


def visit(name: str, first: int, last: int, area: str = "lab") -> dict[str, Any]:
    return {"id": name, "from": first * MINUTE, "to": last * MINUTE, "area": area}


def timed(it: dict[str, Any]) -> dict[str, Any]:
    if "from" in it:
        return it
    return {"earliest": it["time"], "latest": it["time"], **{k: it[k] for k in it if k != "time"}}


# Time in minutes; s1 has no report, s2 has one, s3 is too weak, s4 has one in another area.
SMOKE = [
    event("s1", 10),
    event("s2", 20),
    event("s3", 30, level=1),
    event("s4", 40, "hall"),
]
REPORT = [event("r1", 16), event("r2", 25), event("r4", 41), event("r5", 60)]
# v1 covers s1, and v2 ends with s3; s2 is between both, and s4 in another area.
VISIT = [visit("v1", 5, 12), visit("v2", 21, 30)]
EVENTS = {"smoke": SMOKE, "report": REPORT, "visit": VISIT}
FOUND = {
    ("unreported", "s1", "lab"),
    ("unreported", "s4", "hall"),
    ("unattended", "s2", "lab"),
    ("unattended", "s4", "hall"),
}


def write_lines(file: Path, events: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(timed(it)) + "\n" for it in events))
    return file


def write_resources(folder: Path) -> Path:
    file = folder / "resources.yaml"
    streams = "---\n".join(
        json.dumps({"kind": "stream", "name": name, **document}) + "\n"
        for name, document in STREAMS.items()
    )
    queries = ""
    for name, text in QUERIES.items():
        query = "".join(f"  {line}\n" for line in text.splitlines())
        queries += f"---\nkind: event_query\nname: {name}\nquery: |-\n{query}"
    file.write_text(f"{streams}{queries}")
    return file


def send(bootstrap: str, stream: str, *events: dict[str, Any]) -> None:
    topic = str(STREAMS[stream]["topic"])
    produce(bootstrap, topic, [Sent(json.dumps(timed(it)).encode()) for it in events])


def results(values: list[bytes | str]) -> set[tuple[str, str, str]]:
    found = [json.loads(it) for it in values]
    assert {(it["kind"], it["type"], it["attributes"]["rule"]) for it in found} <= {
        ("event_query", "Alarm", "no report"),
        ("event_query", "Unattended", "no visit"),
    }
    return {(it["condition"], it["events"]["s"]["id"], it["attributes"]["area"]) for it in found}


def test_replay_evaluates_it(tmp_path: Path) -> None:
    alarms = tmp_path / "alarms.jsonl"
    files = {name: write_lines(tmp_path / f"{name}.jsonl", found) for name, found in EVENTS.items()}
    given = [it for name, file in files.items() for it in ("--events", f"{name}={file}")]
    done = coincide("replay", "-f", str(write_resources(tmp_path)), *given, "--alarms", str(alarms))
    assert done.returncode == 0, done.stderr
    assert results(list(alarms.read_text().splitlines())) == FOUND


def test_service_job_and_commands_take_it(kafka_bootstrap: str, tmp_path: Path) -> None:
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path)
    with running_service(kafka_bootstrap, PREFIX, tmp_path) as url:
        environment = {
            "COINCIDE_URL": url,
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": PREFIX,
        }
        applied = coincide("apply", "-f", str(write_resources(tmp_path)), environment=environment)
        assert applied.returncode == 0, applied.stderr
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            assert client.get("/v1/conditions/unreported").json()["document"]["query"] == QUERY
            try:
                job.start()
                check_results(job, client)
            finally:
                job.process.stop(5)
        check_commands(environment, tmp_path)


def check_results(job: JobUnderTest, client: httpx.Client) -> None:
    send(job.bootstrap, "smoke", *SMOKE[:2])
    send(job.bootstrap, "report", *REPORT[:2])
    send(job.bootstrap, "visit", *VISIT[:1])
    # A restart finds the buffered events and its bound again.
    job.wait_for_slots(lambda slots: any(slot["conditions"] for slot in slots))
    assert job.stop() == 0
    job.start()
    send(job.bootstrap, "smoke", *SMOKE[2:])
    job.kill()
    job.start()
    send(job.bootstrap, "report", *REPORT[2:])
    send(job.bootstrap, "visit", *VISIT[1:])
    for stream in STREAMS:
        close(job, client, stream)
    records = job.read(job.topics.alarms, lambda found: len(found) >= len(FOUND))
    assert len(records) == len(FOUND)
    assert results([it.value or b"" for it in records]) == FOUND
    assert {it.headers["ce_type"] for it in records} == {b"coincide.event_query.v1"}
    status = client.get("/v1/conditions/unreported/status").json()
    assert (status["state"], set(status["streams"])) == ("running", {"smoke", "report"})
    page = client.get("/metrics").text
    assert "# HELP coincide_query_combinations_total " in page


def close(job: JobUnderTest, client: httpx.Client, stream: str) -> None:
    environment = {
        "COINCIDE_URL": str(client.base_url),
        "COINCIDE_BOOTSTRAP": job.bootstrap,
        "COINCIDE_PREFIX": PREFIX,
    }
    closed = coincide("produce", "--close-stream", stream, environment=environment)
    assert closed.returncode == 0, closed.stderr


def check_commands(environment: dict[str, str], folder: Path) -> None:
    tail = coincide("tail", "--from-beginning", "-n", "4", environment=environment)
    assert tail.returncode == 0, tail.stderr
    assert (
        'unreported  Alarm  area="lab"  rule="no report"  [1970-01-01T00:10:00Z]  s=smoke:s1'
        in tail.stdout
    )
    planned = coincide("plan", "unreported", environment=environment)
    assert planned.returncode == 0, planned.stderr
    assert (
        "A Smoke event s is kept until Report has reached its end + 5 min, and Smoke its end."
        in planned.stdout
    )
    picture = folder / "plan.svg"
    drawn = coincide("plan", "unreported", "--svg", str(picture), environment=environment)
    assert drawn.returncode == 0, drawn.stderr
    assert picture.read_text(encoding="utf-8").startswith("<svg ")
    as_json = coincide("plan", "unreported", "--json", environment=environment)
    assert json.loads(as_json.stdout)["streams"] == {"s": "smoke", "r": "report"}
    explained = coincide(
        *("explain", "unreported", "--event", "s=s2", "--event", "r=r2"), environment=environment
    )
    assert explained.returncode == 1, explained.stderr
    assert "event r (r2) stops the combination" in explained.stdout
    alone = coincide("explain", "unreported", "--event", "s=s1", environment=environment)
    assert alone.returncode == 0, alone.stderr
    assert "the result is reported when" in alone.stdout
    missing = coincide("explain", "unreported", "--event", "r=r1", environment=environment)
    assert "s: is missing: add an event of stream smoke" in missing.stderr
    bad = folder / "bad.yaml"
    bad.write_text(
        "kind: event_query\nname: bad\nquery: |-\n  DETECT A\n  ON event s Smoke\n  END\n"
    )
    refused = coincide("apply", "-f", str(bad), environment=environment)
    assert refused.returncode == 6
    assert "line 2, column 12: found" in refused.stderr
    assert "\nON event s Smoke\n           ^" in refused.stderr
