"""Event queries: from REST to results, through a restart and a kill.

The queries of the running example and of events that last are on exact times; the query on
uncertain instants has probabilities. They share a service and a job.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from correlation.engine.heartbeats import Heartbeat, heartbeat_to_record
from tests.support.command import coincide, running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Received, Sent, create_topics, produce
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.service_reports import wait_for_metrics, wait_until_running

if TYPE_CHECKING:
    from collections.abc import Iterator
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
WHERE v.rt.begin <= s.rt.end, s.rt.end <= v.rt.end,
      Unattended.rt.end = s.rt.end + 1 min
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
UNCERTAIN_QUERY = """\
DETECT Unreported {area {var X}}
ON event a: Leak {area {var X}}
   not event r: Note {area {var X}}
WHERE a.rt.end <= r.rt.end, r.rt.end <= a.rt.end + 5 min
END"""
UNCERTAIN = {"kind": "event_query", "query": UNCERTAIN_QUERY, "threshold": "0.5"}
PATH = "/v1/conditions/uncertain"
UNCERTAIN_STREAMS = {
    name: {
        "topic": f"{PREFIX}-{name}",
        "max_uncertainty": uncertainty,
        "max_delay": "1min",
        "clock": "replay",
        "partitioning": "grid",
        "attributes": {"area": "area"},
    }
    for name, uncertainty in (("leak", "10min"), ("note", "0s"))
}
# Id, probability, threshold and version of each result.
Result = tuple[str, float, float, int]
RESTARTED: list[Result] = [("a1", 0.7, 0.5, 1), ("a2", 0.5, 0.5, 1)]
CHANGED: list[Result] = [*RESTARTED, ("a4", 0.4, 0.3, 2)]
RESUMED: list[Result] = [*CHANGED, ("a6", 1.0, 0.3, 2)]


def leak(name: str, minute: int) -> dict[str, Any]:
    """Return a leak of the ten minutes from a minute on."""
    times = {"earliest": minute * MINUTE, "latest": (minute + 10) * MINUTE}
    return {"id": name, "area": "lab", **times}


def note(minute: int) -> dict[str, Any]:
    """Return a note of a minute."""
    return {"id": f"r{minute}", "area": "lab", "earliest": minute * MINUTE} | {
        "latest": minute * MINUTE
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
    assert {(it["condition"], it["end"] - it["begin"]) for it in found} == {
        ("unreported", 0),
        ("unattended", MINUTE),
    }
    return {(it["condition"], it["events"]["s"]["id"], it["attributes"]["area"]) for it in found}


def test_replay_evaluates_it(tmp_path: Path) -> None:
    alarms = tmp_path / "alarms.jsonl"
    files = {name: write_lines(tmp_path / f"{name}.jsonl", found) for name, found in EVENTS.items()}
    given = [it for name, file in files.items() for it in ("--events", f"{name}={file}")]
    done = coincide("replay", "-f", str(write_resources(tmp_path)), *given, "--alarms", str(alarms))
    assert done.returncode == 0, done.stderr
    assert results(list(alarms.read_text().splitlines())) == FOUND


@dataclass
class House:
    """A service and a job, a client of the service, and the settings of commands."""

    job: JobUnderTest
    client: httpx.Client
    environment: dict[str, str]
    folder: Path

    def send_uncertain(self, *events: dict[str, Any]) -> None:
        """Send events to the topic of their stream: ids of notes begin with r."""
        for stream, document in UNCERTAIN_STREAMS.items():
            mine = [it for it in events if it["id"].startswith("r") == (stream == "note")]
            sent = [Sent(json.dumps(it).encode()) for it in mine]
            produce(self.job.bootstrap, str(document["topic"]), sent)

    def reach(self, minute: int) -> None:
        """Set the watermarks of the uncertain query to a minute; wait until the job has done so."""
        beats = [Heartbeat(name, None, (minute + 1) * MINUTE, None) for name in UNCERTAIN_STREAMS]
        values = [Sent(json.dumps(heartbeat_to_record(it)).encode()) for it in beats]
        produce(self.job.bootstrap, self.job.topics.heartbeats, values)

        def reached() -> bool:
            streams = self.client.get(f"{PATH}/status").json()["streams"].values()
            return all((it["watermark"] or 0) >= minute * MINUTE for it in streams)

        wait_until(reached)

    def wait_until_applied(self, state: str) -> None:
        """Wait until the job has applied the newest record of the uncertain query."""

        def holds() -> bool:
            status = self.client.get(f"{PATH}/status").json()
            return bool(status["applied"]) and status["state"] == state

        wait_until(holds)

    def read_results(self, conditions: set[str], count: int) -> list[Received]:
        """Return the results of conditions, once there are as many as given."""

        def select(records: list[Received]) -> list[Received]:
            return [it for it in records if json.loads(it.value or b"")["condition"] in conditions]

        topic = self.job.topics.alarms
        return select(self.job.read(topic, lambda found: len(select(found)) >= count))

    def check_uncertain(self, expected: list[Result]) -> None:
        """Check the results of the uncertain query, in the order of their events."""
        records = self.read_results({"uncertain"}, len(expected))
        found = [json.loads(it.value or b"") for it in records]
        assert {it["attributes"]["area"] for it in found} == {"lab"}
        # The probabilities are float64, for display.
        assert expected == sorted(
            (it["events"]["a"]["id"], round(it["probability"], 9), it["threshold"], it["version"])
            for it in found
        )


@pytest.fixture(scope="module")
def house(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Return an installation whose job was stopped and killed while results of queries were open.

    Some events of each query are sent before the stop, some before the kill.
    """
    folder = tmp_path_factory.mktemp("house")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    create_topics(kafka_bootstrap, {str(it["topic"]): 1 for it in UNCERTAIN_STREAMS.values()})
    with (
        running_service(kafka_bootstrap, PREFIX, folder) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client,
    ):
        environment = {
            "COINCIDE_URL": url,
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": PREFIX,
        }
        applied = coincide("apply", "-f", str(write_resources(folder)), environment=environment)
        assert applied.returncode == 0, applied.stderr
        for name, document in UNCERTAIN_STREAMS.items():
            assert client.put(f"/v1/streams/{name}", json=document).status_code == 201
        assert client.put(PATH, json=UNCERTAIN).status_code == 201
        found = House(job, client, environment, folder)
        try:
            job.start()
            send(job.bootstrap, "smoke", *SMOKE[:2])
            send(job.bootstrap, "report", *REPORT[:2])
            send(job.bootstrap, "visit", *VISIT[:1])
            found.send_uncertain(leak("a1", 0), leak("a2", 20), leak("a3", 40))
            found.reach(5)
            # A restart finds the buffered events and its bound again.
            job.wait_for_slots(lambda slots: any(slot["conditions"] for slot in slots))
            assert job.stop() == 0
            job.start()
            found.send_uncertain(note(12), note(25))
            found.reach(6)
            send(job.bootstrap, "smoke", *SMOKE[2:])
            job.kill()
            job.start()
            yield found
        finally:
            job.process.stop(5)


def test_service_job_and_commands_take_it(house: House) -> None:
    job, client = house.job, house.client
    assert client.get("/v1/conditions/unreported").json()["document"]["query"] == QUERY
    send(job.bootstrap, "report", *REPORT[2:])
    send(job.bootstrap, "visit", *VISIT[1:])
    for stream in STREAMS:
        closed = coincide("produce", "--close-stream", stream, environment=house.environment)
        assert closed.returncode == 0, closed.stderr
    records = house.read_results(set(QUERIES), len(FOUND))
    assert len(records) == len(FOUND)
    assert results([it.value or b"" for it in records]) == FOUND
    assert {it.headers["ce_type"] for it in records} == {b"coincide.event_query.v1"}
    wait_until_running(client, "/v1/conditions/unreported", {"smoke", "report"})
    wait_for_metrics(client, "# HELP coincide_query_combinations_total ")
    check_commands(house.environment, house.folder)


def check_commands(environment: dict[str, str], folder: Path) -> None:
    chosen = [it for name in QUERIES for it in ("--condition", name)]
    tail = coincide("tail", "--from-beginning", *chosen, "-n", "4", environment=environment)
    assert tail.returncode == 0, tail.stderr
    assert (
        'unreported  Alarm  area="lab"  rule="no report"  [1970-01-01T00:10:00Z]  s=smoke:s1'
        in tail.stdout
    )
    planned = coincide("plan", "unreported", environment=environment)
    assert planned.returncode == 0, planned.stderr
    assert_names(planned.stdout, "Smoke event s", "kept until Report", "end + 5 min")
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
    assert_names(" ".join(alone.stdout.split()), "reported when", "report has reached")
    missing = coincide("explain", "unreported", "--event", "r=r1", environment=environment)
    assert_names(missing.stderr, "s: is missing", "stream smoke")
    bad = folder / "bad.yaml"
    bad.write_text(
        "kind: event_query\nname: bad\nquery: |-\n  DETECT A\n  ON event s Smoke\n  END\n"
    )
    refused = coincide("apply", "-f", str(bad), environment=environment)
    assert refused.returncode == 6
    assert "line 2, column 12: found" in refused.stderr
    assert "\nON event s Smoke\n           ^" in refused.stderr


def test_results_have_their_probability_through_restarts_a_change_and_a_pause(house: House) -> None:
    client = house.client
    house.send_uncertain(note(44), note(46))
    house.reach(60)
    # The probability of a3 is 0.4.
    house.check_uncertain(RESTARTED)

    # A smaller threshold holds for later results only.
    assert client.put(PATH, json=UNCERTAIN | {"threshold": "0.3"}).status_code == 200
    house.wait_until_applied("running")
    house.send_uncertain(leak("a4", 70), note(74), note(76))
    house.reach(90)
    house.check_uncertain(CHANGED)

    # The results of a pause are not reported later.
    assert client.put(f"{PATH}/pause").status_code == 202
    house.wait_until_applied("paused")
    house.send_uncertain(leak("a5", 100))
    house.reach(120)
    assert client.put(f"{PATH}/resume").status_code == 202
    house.wait_until_applied("running")
    house.send_uncertain(leak("a6", 130))
    house.reach(150)
    house.check_uncertain(RESUMED)

    wait_for_metrics(client, 'coincide_query_decisions_total{condition="uncertain",decided_by="')
    tail = coincide(
        *("tail", "--from-beginning", "--condition", "uncertain", "-n", "1"),
        environment=house.environment,
    )
    assert tail.returncode == 0, tail.stderr
    assert 'Unreported  area="lab"  [' in tail.stdout
    assert "  p=0." in tail.stdout
    explained = coincide("explain", "uncertain", "--event", "a=a1", environment=house.environment)
    assert explained.returncode == 0, explained.stderr
    assert "7/10" in explained.stdout
