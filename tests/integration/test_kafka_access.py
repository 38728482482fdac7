"""Service, job and commands on a Kafka with TLS, passwords and the rights of the manual."""

from __future__ import annotations

import json
import re
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.command import command_line
from tests.support.kafka import read_committed
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.right_uses import EVENT_TOPICS, OUTPUT_TOPICS, listed_rights
from tests.support.secured_kafka import SecuredBroker, User
from tests.support.secured_stack import SPARK_SECRET, SecuredStack
from tests.support.workload import NearCondition, Occurrence, Workload, alarm_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# Part of every secret.
PLANTED = "planted-"
USERS = {
    "service": User("service", f"{PLANTED}service", "SCRAM-SHA-512"),
    # Characters that have a meaning in the configuration of Java's login.
    "job": User("job", f'{PLANTED}job "quoted" = \\; \' password', "SCRAM-SHA-256"),
    "cli": User("cli", f"{PLANTED}cli", "PLAIN"),
}
PREFIX = f"k{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
OUT = replace(NEAR, name="out")
RESOURCES = f"""\
{{kind: stream, name: a, topic: {PREFIX}-in-a, max_uncertainty: 20ms, max_delay: 1d}}
---
{{kind: stream, name: b, topic: {PREFIX}-in-b, max_uncertainty: 20ms, max_delay: 1d}}
---
{{kind: mutual_deadline, name: near, a: a, b: b, window: 30ms, threshold: 0.6}}
---
{{kind: mutual_deadline, name: out, a: a, b: b, window: 30ms, threshold: 0.6,
  output_topic: {PREFIX}-out}}
"""
COUNT = 300
# Pages of Spark, which show the properties, the plans and the sources of the query.
PAGES = ("environment/", "executors/", "jobs/", "stages/", "SQL/", "StreamingQuery/")
# Answers of the service, and a problem.
PATHS = ("/v1/job", "/metrics", "/readyz", "/v1/config", "/v1/alarms?limit=1")
PROBLEM_PATH = "/v1/streams/none"


class Events:
    """Events that were sent, and the alarms that they cause."""

    def __init__(self, stack: SecuredStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self._sent: list[Occurrence] = []
        self._bursts = 0

    def send(self) -> None:
        """Send events of this moment with the command line."""
        self._bursts += 1
        begin_us = time.time_ns() // 1_000 - 2_000_000
        load = Workload("ab", self._bursts, begin_us, max_uncertainty_us=MAX_UNCERTAINTY_US)
        events = [replace(it, id=f"{self._bursts}.{it.id}") for it in load.take(COUNT)]
        for name in "ab":
            file = self._folder / f"{name}.jsonl"
            of_stream = (it for it in events if it.stream == name)
            file.write_text("".join(f"{_line(it)}\n" for it in of_stream))
            self._stack.run("produce", str(file), "--stream", name, "--key", "key")
        self._sent += events

    def alarms(self, condition: NearCondition) -> list[tuple[str, str, str]]:
        """Return the alarms that all events cause, sorted."""
        return sorted(condition.pairs(self._sent))


def _line(event: Occurrence) -> str:
    return json.dumps({"key": event.key, **json.loads(event.value)})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Return a secured broker whose users have the rights of the manual."""
    names = {EVENT_TOPICS: f"{PREFIX}-in*", OUTPUT_TOPICS: f"{PREFIX}-out"}
    with SecuredBroker(tmp_path_factory.mktemp("broker"), USERS.values()) as broker:
        for it in listed_rights():
            if it.user in USERS:
                broker.grant(USERS[it.user], [it.of(names, PREFIX)])
        yield broker


@pytest.fixture(scope="module")
def stack(
    broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredStack]:
    """Return service, job and commands; service and job run."""
    folder = tmp_path_factory.mktemp("stack")
    (folder / "resources.yaml").write_text(RESOURCES)
    stack = SecuredStack(broker, USERS, PREFIX, folder)
    try:
        stack.start_service()
        stack.run("apply", "-f", str(folder / "resources.yaml"))
        stack.start_job()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def events(stack: SecuredStack, tmp_path_factory: pytest.TempPathFactory) -> Events:
    """Return the events of the module; the tests run in their order."""
    return Events(stack, tmp_path_factory.mktemp("events"))


def test_alarms_are_written_and_read(stack: SecuredStack, events: Events) -> None:
    events.send()
    for condition, options in ((NEAR, ()), (OUT, ("--topic", f"{PREFIX}-out"))):
        expected = events.alarms(condition)
        assert len(expected) > COUNT // 4
        count = str(len(expected))
        lines = stack.run("tail", "--from-beginning", "--json", "-n", count, *options)
        assert alarm_pairs(map(str.encode, lines.splitlines())) == expected
    reading = dict.fromkeys((f"{PREFIX}-out", f"{PREFIX}.alarms", f"{PREFIX}.topk"))
    with stack.client() as client:

        def are_read() -> bool:
            found = client.get("/v1/alarms?limit=1")
            return (len(found["items"]), found["reading"]) == (1, reading)

        wait_until(are_read)


def test_dead_letters_replay_and_checks_have_their_rights(
    stack: SecuredStack, events: Events, tmp_path: Path
) -> None:
    (tmp_path / "resources.yaml").write_text(RESOURCES)
    (tmp_path / "wrong.jsonl").write_text("{}\n")
    stack.run("produce", str(tmp_path / "wrong.jsonl"), "--stream", "a")
    letter = json.loads(stack.run("tail", "--set-aside", "--from-beginning", "--json", "-n", "1"))
    assert letter["value"] == "{}"
    lines = stack.run(
        *("replay", "-f", str(tmp_path / "resources.yaml"), "--topics", "--condition", "near")
    )
    assert alarm_pairs(map(str.encode, lines.splitlines())) == events.alarms(NEAR)
    stack.run("repair-config")

    def have_answered() -> bool:
        checks = {it["name"]: it for it in json.loads(stack.tried("doctor", "--json").stdout)}
        return bool(checks["broker"]["ok"] and checks["service"]["ok"])

    # On a busy machine, an answer may take longer than doctor waits.
    wait_until(have_answered)


@pytest.mark.nightly
def test_killed_job_and_service_continue(
    stack: SecuredStack, broker: SecuredBroker, events: Events
) -> None:
    stack.job.kill()
    stack.service.kill()
    stack.start_service()
    events.send()
    stack.start_job()
    for condition, topic in ((NEAR, f"{PREFIX}.alarms"), (OUT, f"{PREFIX}-out")):
        expected = events.alarms(condition)
        found = _at_least(broker.bootstrap, topic, len(expected))
        assert alarm_pairs(it.value for it in found) == expected
    _wait_for_further_batch(stack)
    # Nothing follows.
    for condition, topic in ((NEAR, f"{PREFIX}.alarms"), (OUT, f"{PREFIX}-out")):
        found = read_committed(broker.bootstrap, topic)
        assert len(found) == len(events.alarms(condition))


def test_wrong_password_is_named_and_not_repeated(stack: SecuredStack) -> None:
    wrong = {"COINCIDE_KAFKA_PASSWORD_FILE": stack.secret("wrong", f"{PLANTED}wrong")}

    def is_named(said: str) -> bool:
        assert PLANTED not in said
        return re.search("SASL authentication error: .*; correct sasl.username", said) is not None

    # On a busy machine the broker may answer later than a command waits for its reason.
    wait_until(lambda: is_named(stack.tried("doctor", "--json", **wrong).stdout))
    wait_until(lambda: is_named(stack.tried("tail", "-n", "1", **wrong).stderr))
    wait_until(lambda: is_named(stack.tried("serve", **wrong, COINCIDE_PORT="0").stderr))
    job = stack.make_job(**wrong)
    before = job.log_path.stat().st_size
    job.start()
    try:
        job.wait_until(lambda: is_named(_read(job.log_path)[before:]), PATIENCE_SECONDS)
    finally:
        job.stop()


def test_secrets_are_nowhere(stack: SecuredStack, broker: SecuredBroker) -> None:
    places: dict[str, str] = {}
    pids = stack.processes()
    # The service; Python, Java and the workers of the job.
    assert len(pids) >= 4
    for pid in pids:
        places[f"command line of {pid}"] = command_line(pid)
        # A worker may have ended.
        with suppress(FileNotFoundError, ProcessLookupError):
            places[f"environment of {pid}"] = _read(Path(f"/proc/{pid}/environ"))
    with stack.pages() as client:
        problem = client.get(f"{stack.url}{PROBLEM_PATH}")
        assert problem.status_code == HTTPStatus.NOT_FOUND
        assert problem.text.startswith('{"type":"urn:coincide:problem:')
        places[PROBLEM_PATH] = problem.text
        places |= {path: _page(client, f"{stack.url}{path}") for path in PATHS}
        places |= {page: _page(client, f"{stack.ui}/{page}") for page in PAGES}
        api = f"{stack.ui}/api/v1/applications"
        (application,) = json.loads(_page(client, api))
        for part in ("environment", "sql?details=true&length=20"):
            places[part] = _page(client, f"{api}/{application['id']}/{part}")
    properties = dict(json.loads(places["environment"])["sparkProperties"])
    assert properties[SPARK_SECRET] == "*********(redacted)"
    assert "Scan" in places["sql?details=true&length=20"]
    places["doctor"] = stack.run("doctor") + stack.run("doctor", "--json")
    for name in ("metrics", "state", "config", "audit", "dead-letter"):
        places[name] = repr(read_committed(broker.bootstrap, f"{PREFIX}.{name}"))
    # Of all commands so far.
    assert len(stack.outputs) > 10
    places |= {f"output {number}": text for number, text in enumerate(stack.outputs)}
    for path in stack.written():
        # Spark may have deleted a file of the checkpoint.
        with suppress(FileNotFoundError):
            places[str(path)] = _read(path)
    for name in ("service.log", "job.log", "checkpoint/", "events/"):
        assert any(name in place for place in places), places.keys()
    secrets = (PLANTED, stack.api_key)
    found = [it for it, content in places.items() if any(secret in content for secret in secrets)]
    assert found == []


def test_no_operation_was_refused(broker: SecuredBroker) -> None:
    assert broker.refused() == []
    user = USERS["cli"]
    topic = f"{PREFIX}.metrics"
    client = AdminClient(
        {
            "bootstrap.servers": broker.secured,
            "sasl.password": user.password,
            **broker.properties(user),
        }
    )
    with suppress(KafkaException):
        client.list_topics(topic, timeout=PATIENCE_SECONDS)
    wait_until(lambda: bool(broker.refused()))
    assert topic in broker.refused()[0]


def test_problem_of_a_request_that_kafka_refuses_has_no_secret(stack: SecuredStack) -> None:
    document = {"topic": f"elsewhere-{PREFIX}", "max_uncertainty": "1s", "max_delay": "1s"}
    with stack.pages() as client:
        refused = client.put(f"{stack.url}/v1/streams/elsewhere", json=document)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert_names(refused.json()["detail"], "user service", "right")
    assert not any(secret in refused.text for secret in (PLANTED, stack.api_key))


def _at_least(bootstrap: str, topic: str, count: int) -> list[Received]:
    """Wait for a number of records; return them."""
    return read_committed(bootstrap, topic, lambda found: len(found) >= count)


def _wait_for_further_batch(stack: SecuredStack) -> None:
    """Wait for a batch that begins after this moment; heartbeats cause batches."""
    now_us = time.time_ns() // 1_000
    with stack.client() as client:
        wait_until(lambda: client.get("/v1/job")["at"] > now_us)
        # The batch after this one may have begun.
        completed = client.get("/v1/job")["batch"]
        wait_until(lambda: client.get("/v1/job")["batch"] >= completed + 2)


def _page(client: httpx.Client, url: str) -> str:
    return client.get(url).raise_for_status().text


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
