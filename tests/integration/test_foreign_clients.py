"""The examples of docs/consumers.md read committed alarms, and none of an aborted transaction."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from itertools import chain
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

import orjson
import pytest

from cli.stack.jars import broker_jars
from coincide.alarms import AlarmReader, TimingAlarm
from correlation.resources.topics import Topics
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import ID_HEADER, Record
from tests.support import result_values as results
from tests.support.claims import claim, target
from tests.support.kafka import Sent, create_topics, produce, produce_in_transaction
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tools import skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_jobs.settings import Properties
    from tests.support.result_values import Written

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "consumers.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^```\w+ ([\w-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
# Installed by `make clients`.
MODULES = ROOT / "tests" / "clients" / "node_modules"
needs_kcat = pytest.mark.needs_tool("kcat", "apt-get install kcat")
needs_node = pytest.mark.needs_tool("node", "apt-get install nodejs npm, then make clients")
needs_javac = pytest.mark.needs_tool("javac", "apt-get install openjdk-17-jdk-headless")


PYTHON_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")
# The line of the Python examples that processes an alarm.
PROCESSING = re.compile(r"^( *)print\(alarm.condition, alarm.alarm_id, flush=True\)$", re.MULTILINE)


class Published(NamedTuple):
    """A topic with two committed transactions, and an aborted one between them."""

    bootstrap: str
    topic: str
    values: list[str]
    alarms: list[str]


def _records(topic: str, written: Written) -> Iterator[Record]:
    headers = written.result.heading(results.DETECTED_AT).headers
    common = [(name, value.encode()) for name, value in headers.items()]
    for it in written.result.records(results.DETECTED_AT, orjson.dumps):
        yield Record(topic, it.key, it.value, [*common, (ID_HEADER, it.ident.encode())])


def _lines(records: Iterable[Record]) -> list[str]:
    """Return the lines that the Python examples print."""
    reader = AlarmReader()
    return [
        f"{found.condition} {found.alarm_id}"
        for it in records
        for found in reader.read(it.key, it.value, it.headers)
        if isinstance(found, TimingAlarm)
    ]


@pytest.fixture(scope="module")
def published(kafka_bootstrap: str) -> Published:
    """Return a topic into which the sink has written pairs, an A without a B, factored records."""
    topics = Topics(f"clients{uuid.uuid4().hex[:10]}")
    names = (topics.alarms, topics.config, topics.dead_letter, topics.state)
    create_topics(kafka_bootstrap, dict.fromkeys(names, 1))
    properties: Properties = {"bootstrap.servers": kafka_bootstrap}
    producer = PartitionProducer(target(topics, claim(topics, properties)), properties)
    kinds = results.one_of_each_kind()[:3]
    transactions = [[*_records(topics.alarms, it)] for it in (kinds[0], kinds[2], kinds[1])]
    assert producer.write(0, transactions[0]) == 1
    aborted = [Sent(b'{"aborted": true}', b"north")]
    produce_in_transaction(kafka_bootstrap, topics.alarms, aborted, aborted=True)
    assert producer.write(1, [*transactions[1], *transactions[2]]) == len(transactions[1]) + 1
    records = list(chain.from_iterable(transactions))
    alarms = _lines(records)
    assert len(alarms) == 4
    return Published(
        kafka_bootstrap, topics.alarms, [(it.value or b"").decode() for it in records], alarms
    )


def _run(command: list[str], count: int, folder: Path, environment: dict[str, str]) -> list[str]:
    """Return the first lines that a program prints, and end it."""
    lines: Queue[str | None] = Queue()
    # An example of our own page, with a client that CI installs.
    with (folder / "errors.txt").open("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

        def forward() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line.rstrip("\n"))
            lines.put(None)

        thread = Thread(target=forward, daemon=True)
        thread.start()
        found: list[str] = []
        try:
            while len(found) < count:
                line = lines.get(timeout=PATIENCE_SECONDS)
                assert line is not None, (folder / "errors.txt").read_text(encoding="utf-8")
                # kafkajs logs to the same place, as JSON with a level.
                if not line.startswith('{"level"'):
                    found.append(line)
        except Empty:
            pytest.fail(f"{found}: {(folder / 'errors.txt').read_text(encoding='utf-8')}")
        finally:
            process.kill()
            process.wait()
            thread.join()
    return found


def _example(name: str, bootstrap: str, topic: str) -> str:
    """Return an example with the address, the topic and a consumer group of the test."""
    code: str = EXAMPLES[name].replace("localhost:9092", bootstrap)
    # The import of the package `coincide.alarms` is kept.
    for before in ('"', "-t "):
        code = code.replace(f"{before}coincide.alarms", f"{before}{topic}")
    return code.replace('"pager"', f'"{uuid.uuid4().hex}"')


def _fail_at(code: str, line: str, folder: Path) -> list[str]:
    """Run an example that raises an error after a line; return all lines that it prints."""
    file, alarm_id = folder / "failing.py", line.split()[1]
    failing = PROCESSING.sub(rf"\g<0>\n\1assert alarm.alarm_id != {alarm_id!r}", code)
    file.write_text(failing, encoding="utf-8")
    # An example of our own page.
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "AssertionError" in done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_python_client_reads_committed_records(
    client: str, published: Published, tmp_path: Path
) -> None:
    file = tmp_path / "alarms.py"
    file.write_text(_example(client, published.bootstrap, published.topic), encoding="utf-8")
    lines = [repr(value.encode()) for value in published.values]
    assert _run([sys.executable, str(file)], len(lines), tmp_path, {}) == lines


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_python_client_reads_alarms(client: str, published: Published, tmp_path: Path) -> None:
    file = tmp_path / "alarms.py"
    code = _example(f"{client}-commits", published.bootstrap, published.topic)
    file.write_text(code, encoding="utf-8")
    command = [sys.executable, str(file)]
    assert _run(command, len(published.alarms), tmp_path, {}) == published.alarms


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_python_client_continues_after_errors(
    client: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = f"errors{uuid.uuid4().hex[:10]}.alarms"
    create_topics(kafka_bootstrap, {topic: 1})
    pair, unmatched, factored = results.one_of_each_kind()[:3]
    other = results.unmatched(results.timing_condition(), b"north", [results.row(b"mic-3", 1, 2)])
    table, base = _records(topic, factored)
    records = [
        *_records(topic, pair),
        table,
        *_records(topic, unmatched),
        *_records(topic, other),
        base,
    ]
    alarms = _lines(records)
    assert len(alarms) == 5
    sent = [
        Sent(it.value, it.key, headers=tuple((name, found or b"") for name, found in it.headers))
        for it in records
    ]
    produce(kafka_bootstrap, topic, sent[:-1])
    code = _example(f"{client}-commits", kafka_bootstrap, topic)
    assert _fail_at(code, alarms[0], tmp_path) == alarms[:1]
    # Nothing was committed. This run ends while the table is held, and after two more records.
    assert _fail_at(code, alarms[2], tmp_path) == alarms[:3]
    produce(kafka_bootstrap, topic, sent[-1:])
    file = tmp_path / "alarms.py"
    file.write_text(code, encoding="utf-8")
    # The first record was committed; the table was not.
    assert _run([sys.executable, str(file)], 4, tmp_path, {}) == alarms[1:]


@needs_kcat
def test_kcat_reads_committed_records(published: Published, tmp_path: Path) -> None:
    command = _example("kcat", published.bootstrap, published.topic).split()
    assert _run(command, len(published.values), tmp_path, {}) == published.values


@needs_node
def test_kafkajs_reads_committed_records(published: Published, tmp_path: Path) -> None:
    if not MODULES.is_dir():
        skip("kafkajs is not installed", "make clients")
    file = tmp_path / "alarms.js"
    file.write_text(_example("kafkajs", published.bootstrap, published.topic), encoding="utf-8")
    command, paths = ["node", str(file)], {"NODE_PATH": str(MODULES)}
    assert _run(command, len(published.values), tmp_path, paths) == published.values


@needs_javac
@pytest.mark.parametrize("example", ["Java", "Java-commits"])
def test_java_reads_committed_records(example: str, published: Published, tmp_path: Path) -> None:
    file = tmp_path / "Alarms.java"
    file.write_text(_example(example, published.bootstrap, published.topic), encoding="utf-8")
    command = ["java", "-cp", os.pathsep.join(map(str, broker_jars())), str(file)]
    assert _run(command, len(published.values), tmp_path, {}) == published.values


def test_every_example_is_run() -> None:
    with_commits = {f"{it}-commits" for it in (*PYTHON_CLIENTS, "Java")}
    assert set(EXAMPLES) == {*PYTHON_CLIENTS, "kcat", "kafkajs", "Java", *with_commits}


def test_first_example_of_a_client_has_ten_lines() -> None:
    for name, code in EXAMPLES.items():
        if not name.endswith("-commits"):
            assert len([line for line in code.splitlines() if line.strip()]) <= 10, name
