"""Top-k conditions from registration to lists: service, job, topics and commands.

The expected lists are all pairs of the valid sets, compared with rational numbers.
"""

from __future__ import annotations

import copy
import json
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.oracle.topk import Pair, TokenSet, ranked_pairs
from tests.support.command import coincide, running_service
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Received, Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.service_reports import wait_for_metrics, wait_until_running
from tests.support.topk_lists import (
    Lists,
    Named,
    fold_ranks,
    folded,
    listed,
    newest_lists,
    read_json,
)
from tests.support.topk_metrics import wait_for_topk_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SECOND_US = 1_000_000
DELAY_SECONDS = 5
# Topics of the streams, each with two partitions; log and hosts are streams of the same topic.
TOPICS = {"log": "log", "hosts": "log", "ref": "ref"}
PARTITIONS = 2
STREAM = {
    "max_uncertainty": "0s",
    "max_delay": f"{DELAY_SECONDS}s",
    "clock": "replay",
    "tokens": {"path": "text", "tokenizer": "words", "lower_case": True},
    "attributes": {"color": "color"},
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "near": {"a": "log", "k": 5, "window": "60s"},
    "cross": {
        "a": "log",
        "b": "ref",
        "k": 4,
        "window": "30s",
        "similarity": "cosine",
        "min_similarity": "0.5",
        "report": "every",
        "where": {"b": {"color": "red"}},
    },
    "hosts-near": {
        "a": "hosts",
        "k": 2,
        "window": "60s",
        "similarity": "hamming",
        "max_distance": 3,
        "per_key": True,
        "search": "newest",
    },
}
PATH = "/v1/conditions/near"
Event = dict[str, Any]


def draw_events(chance: random.Random, count: int, begin: int, end: int) -> list[Event]:
    """Return events of both topics with times in seconds, at most the max_delay out of order."""
    found = []
    for _ in range(count):
        words = chance.sample("ABCDEFGH", chance.choice([0, 1, 2, 3, 3, 4, 5]))
        found.append(
            {
                "topic": chance.choice(["log", "log", "ref"]),
                "id": f"e{chance.getrandbits(40):x}",
                "key": chance.choice("kl"),
                # Few distinct times: ties are frequent.
                "time": chance.randrange(2 * begin, 2 * end) * SECOND_US // 2,
                "text": ", ".join(words),
                "color": chance.choice(["red", "red", "blue"]),
            }
        )
    late = DELAY_SECONDS * SECOND_US
    return sorted(found, key=lambda it: (it["time"] + chance.randint(0, late), it["id"]))


def expected_lists(
    documents: Mapping[str, Mapping[str, Any]], events: Iterable[Event], as_of_us: int
) -> Lists:
    """Return the lists of conditions, given by name, at a time by brute force."""
    every, found = list(events), Lists()
    for name, document in documents.items():
        keys = [None]
        if document.get("per_key"):
            keys = sorted({it["key"] for it in every})
        for key in keys:
            chosen = [it for it in every if key is None or it["key"] == key]
            pairs, ids = _ranked(document, chosen, as_of_us)
            if pairs:
                found[name if key is None else f"{name}/{key}"] = [
                    (
                        ids[it.older.number],
                        ids[it.newer.number],
                        len(it.older.tokens & it.newer.tokens),
                    )
                    for it in pairs[: document["k"]]
                ]
    return found


def _ranked(
    document: Mapping[str, Any], events: Iterable[Event], as_of_us: int
) -> tuple[list[Pair], list[str]]:
    """Return the ranked pairs of a condition, and the ids of its sets by their numbers."""
    sides = [TOPICS[document[role]] for role in "ab" if role in document]
    window_us = int(document["window"].removesuffix("s")) * SECOND_US
    color = document.get("where", {}).get("b", {}).get("color")
    valid = sorted(
        (it["time"], sides.index(it["topic"]), it["id"], it["text"])
        for it in events
        if as_of_us - window_us <= it["time"] <= as_of_us
        and it["topic"] in sides
        and it["text"]
        and (color is None or it["topic"] == sides[0] or it["color"] == color)
    )
    sets = [
        TokenSet(number, time, frozenset(map(ord, text.split(", "))), side)
        for number, (time, side, _, text) in enumerate(valid)
    ]
    name = document.get("similarity", "jaccard")
    minimum = None
    if "min_similarity" in document:
        # The cosine is squared.
        minimum = Fraction(document["min_similarity"]) ** 2
    if "max_distance" in document:
        minimum = Fraction(-document["max_distance"])
    pairs = ranked_pairs(name, sets, crossed=len(sides) > 1, minimum=minimum)
    return pairs, [it[2] for it in valid]


@dataclass
class Installation:
    """A service and a job, a client of the service, the conditions, and the events sent."""

    job: JobUnderTest
    client: httpx.Client
    environment: dict[str, str]
    conditions: dict[str, dict[str, Any]] = field(default_factory=lambda: copy.deepcopy(CONDITIONS))
    events: list[Event] = field(default_factory=list)
    # Further topics of changes.
    topics: list[str] = field(default_factory=list)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def expected(self, as_of_us: int, *, without: str = "") -> Lists:
        """Return the lists of all conditions but one at a time by brute force."""
        documents = {name: it for name, it in self.conditions.items() if name != without}
        return expected_lists(documents, self.events, as_of_us)

    @property
    def last_us(self) -> int:
        """Time of the last event, in µs."""
        return max(int(it["time"]) for it in self.events)

    def send(self, events: Iterable[Event]) -> None:
        """Send events to their topics, in their order."""
        by_topic = defaultdict(list)
        for it in events:
            value = {name: it[name] for name in ("id", "time", "text", "color")}
            by_topic[it["topic"]].append(Sent(json.dumps(value).encode(), it["key"].encode()))
            self.events.append(it)
        for name, records in by_topic.items():
            places = produce(self.job.bootstrap, f"{self.job.prefix}-{name}", records)
            for partition, offset in places:
                self.ends[name, partition] = max(self.ends.get((name, partition), 0), offset + 1)

    def let_pass(self, as_of_seconds: float) -> int:
        """Send the heartbeats after which sets up to a time have taken effect; return it in µs."""
        as_of_us = int(as_of_seconds * SECOND_US)
        beats = [
            {
                "stream": stream,
                "partition": partition,
                "read_up_to": as_of_us + 1 + DELAY_SECONDS * SECOND_US,
                "offset": self.ends.get((topic, partition), 0),
            }
            for stream, topic in TOPICS.items()
            for partition in range(PARTITIONS)
        ]
        records = [Sent(json.dumps(it).encode()) for it in beats]
        produce(self.job.bootstrap, self.job.topics.heartbeats, records)
        return as_of_us

    def wait_for_lists(self, lists: Lists) -> list[Received]:
        """Wait until the compacted topic holds exactly these lists; return all its records."""
        topic = f"{self.job.prefix}.topk.current"
        return self.job.read(topic, lambda found: newest_lists(found) == lists)

    def changes(self, lists: Lists, topic: str = "") -> list[dict[str, Any]]:
        """Return the changes, once the lists follow from them."""
        records = self.job.read(
            topic or f"{self.job.prefix}.topk",
            lambda found: bool(found) and folded(map(read_json, found)) == lists,
        )
        assert {it.headers["ce_type"] for it in records} == {b"coincide.topk.v1"}
        idents = [it.headers["ce_id"] for it in records]
        assert len(idents) == len(set(idents))
        changes = [*map(read_json, records)]
        for found in fold_ranks(changes).values():
            assert sorted(found.values()) == [*range(1, len(found) + 1)]
        return changes

    def check_lists(self, as_of_us: int) -> list[dict[str, Any]]:
        """Compare lists, changes and answers with brute force; return the changes."""
        lists = self.expected(as_of_us)
        assert lists
        self.wait_for_lists(lists)
        changes = self.changes(lists)
        for name in ("near", "cross"):
            wait_until(lambda name=name: self.present(name) == lists.get(name, []))  # type: ignore[misc]
        return changes

    def present(self, name: str, **params: str) -> list[Named]:
        answer = self.client.get(f"/v1/conditions/{name}/topk", params=params)
        assert answer.status_code == 200, answer.text
        return [listed(it) for it in answer.json()["items"]]


def write_resources(folder: Path, prefix: str, groups: int) -> str:
    grid = {"by": "grid", "groups": groups}
    file = folder / "resources.json"
    documents: list[dict[str, Any]] = [
        {
            "kind": "stream",
            "name": name,
            "topic": f"{prefix}-{topic}",
            "partitioning": "key" if name == "hosts" else grid,
            **STREAM,
        }
        for name, topic in TOPICS.items()
    ]
    documents += [
        {"kind": "topk_similarity", "name": name, **document}
        for name, document in CONDITIONS.items()
    ]
    file.write_text("---\n".join(json.dumps(it) + "\n" for it in documents))
    return str(file)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("groups", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_lists_of_the_job_are_those_of_all_pairs(
    kafka_bootstrap: str, tmp_path: Path, groups: int
) -> None:
    prefix = f"topk{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path)
    create_topics(kafka_bootstrap, {f"{prefix}-{it}": PARTITIONS for it in {*TOPICS.values()}})
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
        resources = write_resources(tmp_path, prefix, groups)
        applied = coincide("apply", "-f", resources, environment=environment)
        assert applied.returncode == 0, applied.stderr
        chance = random.Random(5)  # noqa: S311 - a reproducible choice, no secret
        try:
            job.start()
            house.send(draw_events(chance, 80, 1_000, 1_040))
            house.check_lists(house.let_pass(1_040))
            check_late_event(house)
            check_expiry(house)
            check_answers_and_commands(house, groups)
            check_metrics(house, 1_085 * SECOND_US)
            check_restart_and_kills(house, chance)
            check_metrics(house, house.last_us)
            check_replay(house, resources, tmp_path)
            check_new_version(house)
            check_metrics(house, house.last_us)
            check_pause(house)
            check_metrics(house, house.last_us)
            check_removal(house)
            assert job.failures() == []
            assert job.read(job.topics.dead_letter) == []
        finally:
            job.process.stop(5)


def check_late_event(house: Installation) -> None:
    """Send an event after its time has taken effect: it changes the lists."""
    twin = next(it for it in house.events if it["topic"] == "log" and len(it["text"]) > 3)
    late = {**twin, "id": "late", "time": 1_020 * SECOND_US}
    house.send([late])
    changes = house.check_lists(1_040 * SECOND_US)
    entered = [it for it in changes if "late" in {it["older"]["id"], it["newer"]["id"]}]
    assert {it["reason"] for it in entered} == {"set"}
    assert {it["time"] for it in entered} == {1_040 * SECOND_US}
    # Several streams read its topic, in slots that report one after the other.
    slots = house.job.wait_for_slots(
        lambda slots: total(slots, "events_late_total", stream="log") >= 1
    )
    assert total(slots, "events_late_total", stream="log") == 1


def check_expiry(house: Installation) -> None:
    """Let pairs expire by heartbeats alone."""
    before = len(house.changes(house.expected(1_040 * SECOND_US)))
    changes = house.check_lists(house.let_pass(1_085))
    # The topic's partitions are read in any order.
    assert len(changes) > before
    later = [it for it in changes if it["time"] > 1_040 * SECOND_US]
    assert {it["reason"] for it in later} == {"expiry"}
    assert {it["change"] for it in later if it["condition"] == "cross"} >= {"left", "moved"}
    assert max(it["time"] for it in later) <= 1_085 * SECOND_US
    # Each expiry of `cross` is reported at its own time.
    assert len({it["time"] for it in later if it["condition"] == "cross"}) > 1


def check_answers_and_commands(house: Installation, groups: int) -> None:
    wait_until_running(house.client, PATH, {"log"})
    as_of_us = 1_085 * SECOND_US
    lists = house.expected(as_of_us)
    found = house.client.get(f"{PATH}/topk").json()
    assert (found["version"], found["applied_version"], found["as_of"]) == (1, 1, as_of_us)
    first = found["items"][0]
    union = sum(first["sizes"]) - first["overlap"]
    assert first["similarity"] == pytest.approx(first["overlap"] / union)
    keys = [name.partition("/")[2] for name in lists if name.startswith("hosts-near/")]
    for key in keys:
        expected = lists[f"hosts-near/{key}"]
        wait_until(lambda key=key, it=expected: house.present("hosts-near", key=key) == it)  # type: ignore[misc]
    found = house.client.get("/v1/conditions/hosts-near/topk").json()
    assert (found["items"], found["keys"]) == ([], sorted(keys))

    older, newer, overlap = lists["near"][1]
    given = {"a": {"id": newer}, "b": {"id": older}}
    answer = house.client.post(f"{PATH}/explain", json=given).json()
    assert (answer["verdict"], answer["rank"], answer["overlap"]) == ("satisfied", 2, overlap)
    told = coincide("explain", "near", "--a", older, "--b", newer, environment=house.environment)
    assert told.returncode == 0, told.stderr
    assert "the pair has rank 2 of 5" in told.stdout

    tail = coincide(
        *("tail", "--from-beginning", "-n", "2", "--condition", "cross"),
        environment=house.environment,
    )
    assert tail.returncode == 0, tail.stderr
    assert all("similarity=" in it and "↔" in it for it in tail.stdout.splitlines())
    listed = coincide("tail", "--list", "near", "--count", "1", environment=house.environment)
    assert listed.returncode == 0, listed.stderr
    assert "near  as of 1970-01-01T00:18:05Z" in listed.stdout
    rows = [it.split() for it in listed.stdout.splitlines()]
    ranked = [(it[0], it[2], it[4]) for it in rows if it and it[0].isdigit()]
    assert ranked == [
        (str(rank), f"log:{pair[0]}", f"log:{pair[1]}")
        for rank, pair in enumerate(lists["near"], start=1)
    ]
    # Each cell has a list.
    cells = groups * (groups + 1) / 2
    wait_for_metrics(
        house.client,
        "# TYPE coincide_topk_stock_pairs gauge",
        f'coincide_topk_lists{{condition="near"}} {cells}',
    )


def check_metrics(house: Installation, as_of_us: int) -> None:
    """Compare the metrics with the changes and lists that are written."""
    topics = f"{house.job.prefix}.topk", *house.topics
    changes = [read_json(it) for topic in topics for it in house.job.read(topic)]
    lists = house.expected(as_of_us)
    newest = {(it.key or b"").decode(): it for it in house.wait_for_lists(lists)}
    items = {key: read_json(newest[key])["items"] for key in lists}
    lengths = {name: it["k"] for name, it in house.conditions.items()}
    wait_for_topk_metrics(house.client, lengths, changes, items)


def check_restart_and_kills(house: Installation, chance: random.Random) -> None:
    """Stop the job, and kill it while it works: lists and changes go on where they were."""
    job, begin = house.job, 1_085
    assert job.stop() == 0
    house.send(draw_events(chance, 20, begin, begin + 10))
    job.start()
    for _ in range(20):
        begin += 1
        house.send(draw_events(chance, 8, begin, begin + 5))
        house.let_pass(begin)
    job.kill()
    job.start()
    house.check_lists(house.let_pass(house.last_us / SECOND_US))
    records = job.read(f"{job.prefix}.topk.current")
    written = [read_json(it) for it in records if it.value is not None]
    lists = [json.dumps(it | {"detected_at": 0}) for it in written]
    assert len(lists) == len(set(lists))


def check_replay(house: Installation, resources: str, folder: Path) -> None:
    """Compare the lists at the end of a replay of the same events with those of the job."""
    arguments = []
    for stream, topic in TOPICS.items():
        events = folder / f"{stream}.jsonl"
        mine = [it for it in house.events if it["topic"] == topic]
        events.write_text("".join(json.dumps(it) + "\n" for it in mine))
        arguments += ["--events", f"{stream}={events}"]
    changes = folder / "changes.jsonl"
    done = coincide("replay", "-f", resources, *arguments, "--alarms", str(changes), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["conditions"]
    written = {
        "/".join([name, *([it["key"]] if "key" in it else [])]): it
        for name, condition in found.items()
        for it in condition["lists"]
    }
    lists = house.expected(house.last_us)
    assert {key: [listed(one) for one in it["items"]] for key, it in written.items()} == lists
    records = [json.loads(it) for it in changes.read_text().splitlines()]
    assert folded(records) == lists
    # The job has the same lists at that time, value by value.
    current = house.wait_for_lists(lists)
    newest = {(it.key or b"").decode(): it for it in current}
    for key, it in written.items():
        assert read_json(newest[key])["items"] == it["items"]


def check_new_version(house: Installation) -> None:
    """Replace a condition: its list is withdrawn and written again, changes go elsewhere."""
    own = f"{house.job.prefix}-pairs"
    changed = {"kind": "topk_similarity", **house.conditions["near"], "k": 3, "window": "8s"}
    answer = house.client.put(PATH, json={**changed, "output_topic": own})
    assert answer.status_code == 200, answer.text
    before = house.expected(house.last_us, without="near")
    house.conditions["near"] |= {"k": 3, "window": "8s"}
    lists = house.expected(house.last_us)
    house.wait_for_lists(lists)
    old = [it for it in house.changes(before) if it["reason"] == "condition"]
    left = [(it["condition"], it["version"], it["change"]) for it in old]
    assert left.count(("near", 1, "left")) == 5
    records = house.changes({"near": lists["near"]}, own)
    assert {it["version"] for it in records} == {2}
    house.topics.append(own)
    wait_until(lambda: house.client.get(f"{PATH}/topk").json()["version"] == 2)


def check_pause(house: Installation) -> None:
    """Pause a condition: it then has no list, and begins again with later events."""
    path = "/v1/conditions/cross"
    assert house.client.put(f"{path}/pause").status_code == 202
    house.wait_for_lists(house.expected(house.last_us, without="cross"))
    wait_until(lambda: not house.present("cross"))
    assert house.client.put(f"{path}/resume").status_code == 202
    house.job.wait_for_slots(
        lambda slots: any(
            it["conditions"].get("cross", {}).get("state") == "running" for it in slots
        )
    )
    chance = random.Random(6)  # noqa: S311 - a reproducible choice, no secret
    begin = house.last_us // SECOND_US + 1_000
    house.send(draw_events(chance, 60, begin, begin + 20))
    as_of_us = house.let_pass(begin + 20)
    lists = house.expected(as_of_us)
    assert lists.keys() >= {"near", "cross"}
    house.wait_for_lists(lists)


def check_removal(house: Installation) -> None:
    for name in house.conditions:
        assert house.client.delete(f"/v1/conditions/{name}").status_code == 204
    # The newest record of each list is a tombstone.
    gone = dict.fromkeys([b"near", b"cross", b"hosts-near/k", b"hosts-near/l"])
    house.job.read(
        f"{house.job.prefix}.topk.current",
        lambda found: {it.key: it.value for it in found} == gone,
    )
    house.changes({})
    assert house.client.get(f"{PATH}/topk").status_code == 404
