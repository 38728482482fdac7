"""A kind of condition with lists, from another package, works from registration to list."""

from __future__ import annotations

import json
import random
import subprocess
import uuid
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.command import COMMAND, coincide, running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Received, Sent, create_topics, produce
from tests.support.longest import TOY_FOLDER, TOY_KINDS
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.service_reports import wait_for_metrics, wait_until_running

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SECOND_US = 1_000_000
WINDOW_SECONDS = 60
STREAM = {"max_uncertainty": "100s", "max_delay": "0s", "clock": "replay"}
CONDITION = {"kind": "longest_events", "stream": "doors", "places": 2, "window": "60s"}
PATH = "/v1/conditions/longest"
Lists = dict[str, list[str]]


def event(name: str, key: str, at: int, length: int) -> dict[str, Any]:
    """Return an event of a length whose latest time is `at`, both in seconds."""
    return {"id": name, "key": key, "earliest": (at - length) * SECOND_US, "latest": at * SECOND_US}


# Two keys; `c` replaces `a`, and the last event only moves the time.
EVENTS = [
    event("a", "k", 10, 3),
    event("b", "k", 11, 5),
    event("q", "other", 12, 4),
    event("c", "k", 13, 9),
    event("t1", "time", 14, 0),
]
PRESENT: Lists = {"longest/k": ["c", "b"], "longest/other": ["q"]}


def listed(events: Iterable[Mapping[str, Any]], places: int = 2) -> Lists:
    """Return the lists after events in order of time, by brute force."""
    every = list(events)
    as_of = max(it["latest"] for it in every) - 1
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for it in every:
        if as_of - WINDOW_SECONDS * SECOND_US <= it["latest"] <= as_of:
            found[f"longest/{it['key']}"].append((it["earliest"] - it["latest"], it["id"]))
    return {key: [name for _, name in sorted(it)[:places]] for key, it in found.items()}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package on the path of the processes that a test starts."""
    monkeypatch.setenv("PYTHONPATH", str(TOY_FOLDER))


def write_resources(folder: Path, topic: str, **changes: object) -> str:
    file = folder / "resources.json"
    documents = [
        {"kind": "stream", "name": "doors", "topic": topic, **STREAM},
        {"name": "longest", **CONDITION, **changes},
    ]
    file.write_text("---\n".join(json.dumps(it) + "\n" for it in documents))
    return str(file)


def test_brute_force_agrees_with_the_example() -> None:
    assert listed(EVENTS) == PRESENT


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_replay_writes_changes_and_the_lists_at_the_end(tmp_path: Path, processes: str) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps(it) + "\n" for it in EVENTS))
    changes = tmp_path / "changes.jsonl"
    arguments = [
        *("replay", "-f", write_resources(tmp_path, "t"), "--events", f"doors={events}"),
        *("--alarms", str(changes), "--processes", processes),
    ]
    done = coincide(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["conditions"]["longest"]
    # Time does not pass after the last event, which takes effect at the end of the file.
    present = {f"longest/{it['key']}": [one["id"] for one in it["items"]] for it in found["lists"]}
    assert present == {**PRESENT, "longest/time": ["t1"]}
    records = [json.loads(it) for it in changes.read_text().splitlines()]
    assert folded(records) == present
    assert {it["kind"] for it in records} == {"longest_events"}
    assert found["results"] == found["metrics"]["longest_changes_total"] == len(records)
    shown = coincide(*arguments, "--force")
    assert "longest  k  as of 1970-01-01T00:00:13Z" in shown.stderr
    assert ["1", "c", "9"] in [it.split() for it in shown.stderr.splitlines()]


def folded(records: Iterable[Mapping[str, Any]]) -> Lists:
    """Return the lists that follow from changes; fail if a change contradicts an earlier one."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for it in records:
        found = places[f"{it['condition']}/{it['key']}"]
        assert (it["id"] in found) == (it["change"] != "entered"), it
        if it["change"] == "left":
            del found[it["id"]]
        else:
            found[it["id"]] = it["place"]
    return {key: sorted(found, key=found.__getitem__) for key, found in places.items() if found}


@dataclass
class Installation:
    """A service and a job with the kind, and a client of the service."""

    job: JobUnderTest
    client: httpx.Client
    environment: dict[str, str]

    @property
    def topic(self) -> str:
        """Topic of the events."""
        return f"{self.job.prefix}-doors"

    def send(self, events: Iterable[Mapping[str, Any]]) -> None:
        records = [Sent(json.dumps(it).encode(), it["key"].encode()) for it in events]
        produce(self.job.bootstrap, self.topic, records)

    def wait_for_lists(self, lists: Lists) -> list[Received]:
        """Wait until the compacted topic holds exactly these lists; return all its records."""
        topic = f"{self.job.prefix}.longest.current"
        return self.job.read(topic, lambda found: newest_lists(found) == lists)

    def changes(self, lists: Lists) -> list[dict[str, Any]]:
        """Return the changes, once the lists follow from them."""
        records = self.job.read(
            f"{self.job.prefix}.longest",
            lambda found: bool(found) and folded(map(read_json, found)) == lists,
        )
        assert {it.headers["ce_type"] for it in records} == {b"coincide.longest.v1"}
        return [*map(read_json, records)]

    def present(self, key: str) -> dict[str, Any]:
        answer = self.client.get(f"{PATH}/topk", params={"key": key})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait_for_present(self, key: str, ids: list[str]) -> dict[str, Any]:
        wait_until(lambda: [it["id"] for it in self.present(key)["items"]] == ids)
        return self.present(key)


def read_json(record: Received) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.value or b"")
    return found


def newest_lists(records: Iterable[Received]) -> Lists:
    newest = {(it.key or b"").decode(): it.value for it in records}
    return {
        key: [one["id"] for one in json.loads(value)["items"]]
        for key, value in newest.items()
        if value is not None
    }


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_service_job_and_commands_take_it(kafka_bootstrap: str, tmp_path: Path) -> None:
    prefix = f"longest{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, kinds=TOY_KINDS)
    # One partition: the watermark follows the events alone.
    create_topics(kafka_bootstrap, {f"{prefix}-doors": 1})
    with (
        running_service(kafka_bootstrap, prefix, tmp_path) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client,
    ):
        environment = {
            "COINCIDE_URL": url,
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": prefix,
        }
        house = Installation(job, client, environment)
        resources = write_resources(tmp_path, house.topic)
        applied = coincide("apply", "-f", resources, environment=environment)
        assert applied.returncode == 0, applied.stderr
        check_rest(house)
        try:
            job.start()
            house.send(EVENTS)
            house.wait_for_lists(PRESENT)
            house.changes(PRESENT)
            check_present_lists(house)
            check_status(house)
            check_commands(house)
            events = check_restart_and_kills(house)
            check_new_version(house, events)
            check_pause(house, events)
            check_removal(house)
        finally:
            job.process.stop(5)


def check_rest(house: Installation) -> None:
    client = house.client
    document = client.get(PATH).json()["document"]
    assert (document["min_seconds"], document["skip"], document["per_key"]) == ("0", 0, True)
    assert client.get(f"{PATH}/plan").json() == {"lists": "2 events"}
    wrong = {**CONDITION, "min_seconds": -1, "skip": -1, "places": 1001}
    refused = client.put(PATH, json=wrong)
    assert refused.status_code == 422
    assert {(it["field"], it["problem"]) for it in refused.json()["errors"]} == {
        ("min_seconds", "must be at least 0; got -1"),
        ("skip", "must be at least 0"),
        ("places", "must be at most 1000"),
    }
    # Nothing is written yet.
    empty: dict[str, Any] = {"condition": "longest", "items": [], "keys": [], "next": None}
    assert client.get(f"{PATH}/topk").json() == empty | dict.fromkeys(
        ("key", "applied_version", "version", "as_of", "detected_at", "error")
    )
    taken = client.put(PATH, json={**CONDITION, "output_topic": f"{house.job.prefix}.longest"})
    problems = {it["field"]: it["problem"] for it in taken.json()["errors"]}
    assert_names(problems["output_topic"], "internal topic")


def check_present_lists(house: Installation) -> None:
    found = house.wait_for_present("k", ["c", "b"])
    assert (found["key"], found["version"], found["as_of"]) == ("k", 1, 14 * SECOND_US - 1)
    assert found["items"][0] == {"place": 1, "id": "c", "length_us": 9 * SECOND_US}
    assert found["columns"] == ["place", "event", "seconds"]
    assert found["rows"][0] == {"name": "c", "cells": ["1", "c", "9"]}
    assert found["keys"] == []
    house.wait_for_present("other", ["q"])
    pages = [
        house.client.get(f"{PATH}/topk", params={"limit": 1, "after": after}).json()
        for after in ("", "k")
    ]
    assert [(it["keys"], it["next"], it["items"]) for it in pages] == [
        (["k"], "k", []),
        (["other"], None, []),
    ]


def check_status(house: Installation) -> None:
    wait_until_running(house.client, PATH, {"doors"})
    wait_for_metrics(
        house.client,
        "# HELP coincide_longest_listed_events Events in the lists.",
        "# TYPE coincide_longest_listed_events gauge",
        'coincide_longest_listed_events{condition="longest"} 3.0',
        # Over the slots: the max, not the sum of 9 and 4.
        'coincide_longest_length_seconds{condition="longest"} 9.0',
    )


def check_commands(house: Installation) -> None:
    command = partial(coincide, environment=house.environment)
    tail = command("tail", "--from-beginning", "-n", "3", "--condition", "longest")
    assert tail.returncode == 0, tail.stderr
    assert "longest  change=entered  place=1  id=q" in tail.stdout
    lines = command("tail", "--list", "longest", "-n", "2", "--json")
    assert lines.returncode == 0, lines.stderr
    found = [json.loads(it) for it in lines.stdout.splitlines()]
    assert [(it["key"], it["items"][0]["id"]) for it in found] == [("k", "c"), ("other", "q")]
    table = command("tail", "--list", "longest", "-n", "1")
    assert "longest  k  as of 1970-01-01T00:00:13.999999Z" in table.stdout
    assert ["1", "c", "9"] in [it.split() for it in table.stdout.splitlines()]
    missing = command("tail", "--list", "longst")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: --list: condition longst ")
    assert_names(missing.stderr, "longest instead of longst")


def check_restart_and_kills(house: Installation) -> list[dict[str, Any]]:
    """Stop the job, and kill it while it works; return the events that were sent."""
    job = house.job
    assert job.stop() == 0
    job.start()
    chance = random.Random(12)  # noqa: S311 - no secret
    events = [*EVENTS]
    for kill in range(2):
        for _ in range(20):
            burst = [
                event(
                    f"{kill}-{len(events) + number}",
                    chance.choice("kxyz"),
                    15 + (len(events) + number) // 10,
                    chance.randrange(40),
                )
                for number in range(10)
            ]
            house.send(burst)
            events += burst
        job.kill()
        job.start()
    present = listed(events)
    records = house.wait_for_lists(present)
    # Exactly once: no change contradicts an earlier one, and no list is written twice.
    house.changes(present)
    written = [read_json(it) for it in records if it.value is not None]
    lists = [json.dumps(it | {"detected_at": 0}) for it in written]
    assert len(lists) == len(set(lists))
    return events


def check_new_version(house: Installation, events: list[dict[str, Any]]) -> None:
    """Replace the condition: lists are withdrawn and written again, changes go elsewhere."""
    own = f"{house.job.prefix}-changes"
    changed = {**CONDITION, "places": 1, "output_topic": own}
    assert house.client.put(PATH, json=changed).status_code == 200
    present = listed(events, places=1)
    house.wait_for_lists(present)
    house.changes({})
    records = house.job.read(own, lambda found: folded(map(read_json, found)) == present)
    assert {read_json(it)["version"] for it in records} == {2}
    assert house.wait_for_present("k", present["longest/k"])["version"] == 2


def check_pause(house: Installation, events: list[dict[str, Any]]) -> None:
    """Pause and resume the condition: it then has no list, and begins with later events."""
    with subprocess.Popen(  # noqa: S603 - the command under test
        [*COMMAND, "tail", "--list", "longest", "--json"],
        env={**house.environment, "PYTHONPATH": f"{TOY_FOLDER}", "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdout is not None
        try:
            first = [json.loads(follower.stdout.readline())["key"] for _ in listed(events)]
            assert house.client.put(f"{PATH}/pause").status_code == 202
            house.wait_for_lists({})
            gone = [json.loads(follower.stdout.readline()) for _ in first]
            # Keys of different slots are withdrawn in any order.
            gone.sort(key=itemgetter("key"))
            assert gone == [{"condition": "longest", "key": key, "items": None} for key in first]
            follower.send_signal(2)
            assert follower.wait(PATIENCE_SECONDS) == 130
        finally:
            follower.kill()
    house.wait_for_present("k", [])
    assert house.present("k")["as_of"] is None
    assert house.client.put(f"{PATH}/resume").status_code == 202
    house.job.wait_for_slots(
        lambda slots: all(slot["conditions"]["longest"]["state"] == "running" for slot in slots)
    )
    house.send([event("r", "k", 500, 7), event("t2", "time", 501, 0)])
    house.wait_for_lists({"longest/k": ["r"]})


def check_removal(house: Installation) -> None:
    assert house.client.delete(PATH).status_code == 204
    house.wait_for_lists({})
    assert house.client.get(f"{PATH}/topk").status_code == 404
    near = {"kind": "within", "a": "doors", "b": "doors", "lower": "0s", "upper": "1s"}
    assert house.client.put(PATH, json={**near, "threshold": 0.5}).status_code == 201
    refused = house.client.get(f"{PATH}/topk")
    assert (refused.status_code, refused.json()["error_code"]) == (404, 40403)
    assert_names(refused.json()["detail"], "'longest'", "kind within")
    assert_names(refused.json()["detail"], "topk_similarity, longest_events")
    assert house.job.read(house.job.topics.dead_letter) == []
