"""Commands that use the service and Kafka, run as a user runs them."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from cli.client.events import close_stream
from cli.settings import Settings
from cli.stack.broker import free_port
from correlation.reasons import Reason
from correlation.resources.topics import Topics, error_headers
from tests.support.command import coincide, running_service
from tests.support.factored import expand
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    read_committed,
)
from tests.support.messages import assert_names
from tests.support.slots import CONDITIONS, Arrival, Slot, control_record, make_block

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kafka

_RESOURCES = """\
kind: mutual_deadline
name: near
a: acoustic
b: seismic
window: 2s
threshold: "0.6"
---
kind: stream
name: acoustic
topic: {prefix}.acoustic
max_uncertainty: {max_uncertainty}
max_delay: 1s
clock: replay
mapping: {{time: at, format: epoch_s, after: 0.1s, key: station.code}}
---
kind: stream
name: seismic
topic: {prefix}.seismic
max_uncertainty: 1s
max_delay: 1s
"""
_EVENTS = [
    {"at": 1_700_000_000, "station": {"code": "x"}},
    {"at": 1_700_000_001, "station": {"code": 7}},
    {"at": 1_700_000_002, "station": None},
]


def _alarm(condition: str, number: int) -> bytes:
    event = {"id": str(number), "stream": "s", "key": None, "earliest": 0, "latest": 1}
    alarm = {
        "v": 1,
        "alarm_id": str(number),
        "condition": condition,
        "probability": 1.0,
        "threshold": 0.6,
        "decided_by": "probe",
        "late": False,
        "detected_at": number,
        "a": event,
        "b": event,
    }
    return json.dumps(alarm).encode()


@pytest.fixture
def environment(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """Run a service of the test's own and return the settings that lead there."""
    with running_service(kafka_bootstrap, topic_prefix, tmp_path) as url:
        yield {
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": topic_prefix,
            "COINCIDE_URL": url,
        }


def _write_resources(folder: Path, prefix: str, max_uncertainty: str = "100ms") -> str:
    file = folder / "resources.yaml"
    file.write_text(_RESOURCES.format(prefix=prefix, max_uncertainty=max_uncertainty))
    return str(file)


def test_apply_tells_what_it_created_changed_and_left(
    environment: dict[str, str], topic_prefix: str, tmp_path: Path
) -> None:
    file = _write_resources(tmp_path, topic_prefix)
    dry = coincide("apply", "-f", file, "--dry-run", environment=environment)
    *changes, note = dry.stdout.splitlines()
    assert changes == [
        "created   stream acoustic",
        "created   stream seismic",
        "created   condition near",
    ]
    assert note.startswith("dry run: ")
    first = coincide("apply", "-f", file, environment=environment)
    assert first.stdout.splitlines() == [
        "created   stream acoustic",
        "created   stream seismic",
        "created   condition near",
    ]
    file = _write_resources(tmp_path, topic_prefix, max_uncertainty="200ms")
    again = coincide("apply", "-f", file, "--json", environment=environment)
    assert [json.loads(line) for line in again.stdout.splitlines()] == [
        {"kind": "stream", "name": "acoustic", "change": "changed", "warnings": []},
        {"kind": "stream", "name": "seismic", "change": "unchanged", "warnings": []},
        {"kind": "condition", "name": "near", "change": "unchanged", "warnings": []},
    ]
    assert (dry.returncode, first.returncode, again.returncode) == (0, 0, 0)


def test_apply_brings_templates_first_and_streams_take_up_their_versions(
    environment: dict[str, str], topic_prefix: str, tmp_path: Path
) -> None:
    file = tmp_path / "shapes.yaml"

    def applied(middle: str, *options: str) -> list[str]:
        file.write_text(
            f"{{kind: stream, name: s, topic: {topic_prefix}-s, max_uncertainty: 1s, "
            "max_delay: 1s, templates: [t]}\n---\n"
            f"{{kind: template, name: t, buckets: [[0s, {middle}, 0.5], [{middle}, 90ms, 0.5]]}}\n"
        )
        done = coincide("apply", "-f", str(file), *options, environment=environment)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if not line.startswith("dry run")]

    assert applied("20ms", "--dry-run") == ["created   template t", "created   stream s"]
    assert applied("20ms") == ["created   template t", "created   stream s"]
    assert applied("20ms") == ["unchanged template t", "unchanged stream s"]
    assert applied("30ms", "--dry-run") == ["changed   template t", "changed   stream s"]
    assert applied("30ms") == ["changed   template t", "changed   stream s"]


def test_export_diff_and_prune_keep_a_service_and_a_file_alike(
    environment: dict[str, str], topic_prefix: str, tmp_path: Path
) -> None:
    def run(*arguments: str, given: str | None = None) -> tuple[int, list[str]]:
        done = coincide(*arguments, environment=environment, given=given)
        return done.returncode, done.stdout.splitlines()

    file = _write_resources(tmp_path, topic_prefix)
    created = ["created   stream acoustic", "created   stream seismic", "created   condition near"]
    assert run("diff", "-f", file) == (1, created)
    assert run("apply", "-f", file) == (0, created)
    assert run("diff", "-f", file, "--prune") == (0, [])
    exported = coincide("export", environment=environment).stdout
    kept = tmp_path / "all.yaml"
    assert run("export", "--output", str(kept)) == (0, [])
    assert kept.read_text() == exported
    changed = exported.replace("max_uncertainty_us: 100000", "max_uncertainty_us: 200000", 1)
    assert run("diff", "-f", "-", given=changed) == (
        1,
        ["changed   stream acoustic", "          max_uncertainty_us: 100000 → 200000"],
    )
    # The JSON form of the configuration is a file too.
    as_json = coincide("export", "--json", environment=environment).stdout
    assert run("diff", "-f", "-", "--prune", given=as_json) == (0, [])
    without = exported.rsplit("---\n", 1)[0]
    assert run("apply", "-f", "-", "--prune", given=without)[1][-1] == "deleted   condition near"
    code, (line,) = run("diff", "-f", str(kept), "--json")
    assert (code, json.loads(line)["created"]) == (1, [{"kind": "condition", "name": "near"}])
    assert run("diff", "-f", str(tmp_path / "missing.yaml")) == (2, [])


def test_apply_reads_standard_input_and_says_what_the_service_refuses(
    environment: dict[str, str],
) -> None:
    document = (
        '{"kind": "stream", "name": "acoustic", "topic": "t", "max_uncertainty": "1 fortnight"}'
    )
    done = coincide("apply", "-f", "-", environment=environment, given=document)
    assert done.returncode == 6
    assert done.stdout == ""
    place = "error: standard input, document 1 (line 1), stream acoustic: "
    assert done.stderr.startswith(f"{place}PUT /v1/config: 422 ")
    assert "max_uncertainty" in done.stderr


def test_produce_sends_lines_with_keys_and_closes_the_stream(
    environment: dict[str, str], kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    applied = coincide(
        "apply", "-f", _write_resources(tmp_path, topic_prefix), environment=environment
    )
    assert applied.returncode == 0, applied.stderr
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(json.dumps(event) for event in _EVENTS) + "\n\nno JSON")
    arguments = ("--stream", "acoustic", "--key", "station.code", "--close-stream", "acoustic")
    done = coincide("produce", str(file), *arguments, "--json", environment=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"sent": 4, "failed": 0, "first_error": None}
    read = read_committed(kafka_bootstrap, f"{topic_prefix}.acoustic")
    assert sorted((record.value or b"", record.key) for record in read) == sorted(
        [
            (json.dumps(_EVENTS[0]).encode(), b"x"),
            (json.dumps(_EVENTS[1]).encode(), b"7"),
            (json.dumps(_EVENTS[2]).encode(), None),
            (b"no JSON", None),
        ]
    )
    ends = dict.fromkeys(range(2), 0)
    for record in read:
        ends[record.partition] = max(ends[record.partition], record.offset + 1)
    expected = [
        {"v": 1, "stream": "acoustic", "partition": number, "read_up_to": "end", "offset": end}
        for number, end in ends.items()
    ]

    def heartbeats() -> list[object]:
        records = read_committed(kafka_bootstrap, f"{topic_prefix}.heartbeats")
        return [json.loads(record.value or b"") for record in records]

    assert heartbeats() == expected
    # A stream is closed without a file too.
    closed = coincide("produce", "--close-stream", "acoustic", environment=environment)
    assert (closed.returncode, closed.stdout) == (0, "1 stream closed\n"), closed.stderr
    assert heartbeats() == expected * 2


def test_stream_is_closed_behind_its_last_record_not_behind_marks_of_transactions(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    settings = Settings(bootstrap=kafka_bootstrap, prefix=topic_prefix)
    topic = f"{topic_prefix}-events"
    create_topics(kafka_bootstrap, {topic: 2, settings.topics.heartbeats: 1})
    sent = [Sent(b"{}", partition=1)] * 3
    produce_in_transaction(kafka_bootstrap, topic, sent)
    produce_in_transaction(kafka_bootstrap, topic, sent, aborted=True)
    close_stream(settings, "s", topic)
    heartbeats = read_committed(kafka_bootstrap, settings.topics.heartbeats)
    found = [json.loads(record.value or b"") for record in heartbeats]
    assert [(it["partition"], it["offset"]) for it in found] == [(0, 0), (1, 3)]


def test_produce_keeps_the_recorded_pace(
    environment: dict[str, str], topic_prefix: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    # Stamped as they are sent, which the service's own topics are not.
    create_topics(kafka_bootstrap, {f"{topic_prefix}.acoustic": 1})
    coincide("apply", "-f", _write_resources(tmp_path, topic_prefix), environment=environment)
    moments = (1_700_000_000, 1_700_000_001, 1_700_000_002)
    lines = "\n".join(json.dumps({"at": at, "station": {"code": "x"}}) for at in moments)
    arguments = ("--stream", "acoustic", "--speed", "2")
    done = coincide("produce", "-", *arguments, environment=environment, given=lines)
    assert done.returncode == 0, done.stderr
    read = read_committed(kafka_bootstrap, f"{topic_prefix}.acoustic")
    times = sorted(record.timestamp_ms for record in read)
    # Two seconds of recorded time at twice the pace, less what rounding to ms may take.
    assert times[-1] - times[0] >= 990


def test_produce_says_so_when_the_topic_is_missing(environment: dict[str, str]) -> None:
    done = coincide("produce", "-", "--topic", "missing", environment=environment, given="{}")
    assert done.returncode == 5
    assert_names(done.stderr, "topic missing", "register a stream", "coincide apply")
    near = f"{environment['COINCIDE_PREFIX']}.alarm"
    done = coincide("tail", "--topic", near, environment=environment)
    assert done.returncode == 5
    assert re.search(rf"topic {near} does not exist at .*; did you mean {near}s or ", done.stderr)


@pytest.mark.parametrize("name", Topics("").all())
def test_produce_refuses_the_topics_of_the_installation(name: str) -> None:
    environment = {"COINCIDE_PREFIX": "mine"}
    done = coincide("produce", "-", "--topic", f"mine{name}", environment=environment, given="{}")
    assert done.returncode == 2
    assert_names(done.stderr, f"mine{name}", "internal topic")


def test_produce_never_closes_a_live_stream(
    environment: dict[str, str], kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    coincide("apply", "-f", _write_resources(tmp_path, topic_prefix), environment=environment)
    arguments = ("--stream", "acoustic", "--close-stream", "seismic")
    done = coincide("produce", "-", *arguments, environment=environment, given="{}")
    assert done.returncode == 2
    assert_names(done.stderr, "error: --close-stream", "stream seismic is live")
    for topic in ("acoustic", "heartbeats"):
        assert read_committed(kafka_bootstrap, f"{topic_prefix}.{topic}") == []


def test_produce_counts_what_the_broker_does_not_take(
    environment: dict[str, str], kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {f"{topic_prefix}.small": 1}, {"max.message.bytes": "2000"})
    # Hardly compressible, or the client's compression would make it fit.
    long = "".join(sha256(bytes([number])).hexdigest() for number in range(150))
    lines = f"{{}}\n{json.dumps(long)}\n{{}}"
    # All in one batch, which the broker refuses as a whole.
    arguments = ("--topic", f"{topic_prefix}.small", "--rate", "1000")
    done = coincide("produce", "-", *arguments, environment=environment, given=lines)
    assert done.returncode == 5
    assert_names(done.stderr, "1 of 3 records", "first error")
    assert done.stdout.startswith("2 records sent; ")
    assert_names(done.stdout, "coincide tail --set-aside")
    assert len(read_committed(kafka_bootstrap, f"{topic_prefix}.small")) == 2


def test_tail_shows_the_alarms_of_a_condition(kafka_bootstrap: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}.alarms"
    create_topics(kafka_bootstrap, {topic: 1})
    # The report of the last one contains a string of the record.
    base = {"v": 1, "record": "base", "table": "\x1b[2Jowned\nforged line"}
    foreign = [b"no JSON", b'{"at": 1}', json.dumps(base).encode()]
    alarms = [*foreign, *map(_alarm, ("near", "far", "near", "near"), (1, 2, 3, 4))]
    produce(kafka_bootstrap, topic, [Sent(alarm) for alarm in alarms])
    environment = {"COINCIDE_BOOTSTRAP": kafka_bootstrap, "COINCIDE_PREFIX": topic_prefix}
    arguments = ("tail", "--from-beginning", "--condition", "near", "-n", "2")
    as_json = coincide(*arguments, "--json", environment=environment)
    assert [json.loads(line)["alarm_id"] for line in as_json.stdout.splitlines()] == ["1", "3"]
    pretty = coincide(*arguments, environment=environment)
    assert "near  s:1 [1970-01-01T00:00:00Z" in pretty.stdout
    assert (as_json.returncode, pretty.returncode) == (0, 0)
    for lines in (as_json.stderr.split("\n"), pretty.stderr.split("\n")):
        for offset in (0, 1):
            assert lines[offset].startswith(f"{topic}-0@{offset}: ")
            assert_names(lines[offset], "not an alarm", "skipped")
        assert lines[2].startswith(rf"{topic}-0@2: table \x1b[2Jowned\nforged line is missing: ")
        assert lines[3:] == [""]


def test_tail_shows_the_pairs_of_factored_records(kafka_bootstrap: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}.alarms"
    create_topics(kafka_bootstrap, {topic: 1})
    arrivals = [Arrival(name, 0, "k", f"{name}{i}", i, i + 2, i) for i in range(4) for name in "xy"]
    control = control_record(0, "near", {**CONDITIONS["near"], "output": "factored"})
    outcome = Slot().advance(make_block(arrivals, [control]))
    records = [it for result in outcome.results for it in result.records(outcome.detected_at_us)]
    # Reading begins behind a table: that of the last base record, which comes first here.
    sent = [records[-1], *records]
    produce(kafka_bootstrap, topic, [Sent(it.value, it.key) for it in sent])
    environment = {"COINCIDE_BOOTSTRAP": kafka_bootstrap, "COINCIDE_PREFIX": topic_prefix}
    arguments = ("tail", "--from-beginning", "-n", "16", "--json")
    done = coincide(*arguments, environment=environment)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == list(expand((it.value or b"") for it in records))
    assert {(it["a"]["id"], it["b"]["id"]) for it in found} == {
        (f"x{i}", f"y{j}") for i in range(4) for j in range(4)
    }
    assert re.search(rf"{topic}-0@0: table \w+ is missing", done.stderr)


def test_tail_shows_what_was_set_aside_and_why(kafka_bootstrap: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    create_topics(kafka_bootstrap, {topics.dead_letter: 2, topics.late: 1})
    headers = error_headers(Reason.MALFORMED_JSON, "unexpected end", "s", "events", 1, 7)
    produce(kafka_bootstrap, topics.dead_letter, [Sent(b"{", headers=tuple(headers.items()))])
    environment = {"COINCIDE_BOOTSTRAP": kafka_bootstrap, "COINCIDE_PREFIX": topic_prefix}
    arguments = ("tail", "--set-aside", "--from-beginning", "-n", "1")
    shown = json.loads(coincide(*arguments, "--json", environment=environment).stdout)
    assert shown == {
        "reason": "malformed_json",
        "detail": "unexpected end",
        "stream": "s",
        "topic": "events",
        "partition": "1",
        "offset": "7",
        "value": "{",
    }
    line = coincide(*arguments, environment=environment).stdout
    assert line == "malformed_json  events-1@7  s  unexpected end  {\n"


def test_explain_says_why_a_pair_is_reported_or_not(
    environment: dict[str, str], kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    resources = _write_resources(tmp_path, topic_prefix)
    assert coincide("apply", "-f", resources, environment=environment).returncode == 0
    record = json.dumps(_EVENTS[0])
    produce(kafka_bootstrap, f"{topic_prefix}.acoustic", [Sent(record.encode(), partition=0)])
    file = tmp_path / "seismic.json"
    file.write_text('{"id": "geo-7", "key": "x", "time": 1700000001000000}')
    pair = ("explain", "near", "--a", f"{topic_prefix}.acoustic-0-0", "--b", str(file))
    shown = coincide(*pair, environment=environment)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("SATISFIED  near version 1, mutual_deadline\n")
    assert "▲" in shown.stdout
    found = json.loads(coincide(*pair, "--json", environment=environment).stdout)
    assert (found["verdict"], found["a"]["key"], found["s_us"]) == ("satisfied", "x", 900_000)
    # Another key; from standard input.
    other = json.dumps(_EVENTS[1])
    arguments = ("explain", "near", "--a", "-", "--b", str(file), "--json")
    answer = coincide(*arguments, environment=environment, given=other)
    assert (answer.returncode, json.loads(answer.stdout)["failed_step"]) == (1, "key")
    for wrong, words in (
        (("near", "--a", "nobody", "--b", str(file)), "send the event itself"),
        (("no/where", "--a", record, "--b", str(file)), "404"),
        (("near", "--a", record, "--b", "{}", "--since", "soon"), "since"),
    ):
        refused = coincide("explain", *wrong, environment=environment)
        assert (refused.returncode, refused.stdout) == (6, "")
        assert words in refused.stderr


def test_doctor_tells_what_answers(environment: dict[str, str]) -> None:
    done = coincide("doctor", "--json", environment=environment)
    assert done.returncode == 0, done.stdout
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert (found["broker"]["ok"], found["service"]["ok"]) == (True, True)
    assert (found["Java"]["ok"], found["Python"]["ok"], found["pyspark"]["ok"]) == (True,) * 3
    assert found["pyspark"]["found"] == "4.2.1"


def test_commands_say_so_when_nothing_answers(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    environment = {"COINCIDE_BOOTSTRAP": address, "COINCIDE_URL": f"http://{address}"}
    file = _write_resources(tmp_path, "t")
    applied = coincide("apply", "-f", file, environment=environment)
    assert applied.returncode == 6
    assert_names(applied.stderr, "service", f"http://{address}")
    served = coincide("serve", environment=environment)
    assert served.returncode == 1
    assert "Kafka does not answer" in served.stderr
