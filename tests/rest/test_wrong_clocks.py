"""Topics that do not suit their streams, wrong clocks, and resets of watermarks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson
import pytest

from cli.main import main
from correlation.engine.heartbeats import RESET, Heartbeat, heartbeat_from_record
from tests.rest.running import Service, fresh_settings, running
from tests.rest.test_resources import fresh, stream
from tests.support.kafka import Sent, create_topics, produce, read_committed
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kafka
SETTING = "message.timestamp.type"


def new_topic(service: Service, stamped: str | None = None, partitions: int = 1) -> str:
    topic = f"{service.settings.prefix}-{fresh('clock')}"
    settings = {} if stamped is None else {SETTING: stamped}
    create_topics(service.settings.bootstrap, {topic: partitions}, settings)
    return topic


def command(capsys: pytest.CaptureFixture[str], service: Service, *arguments: str) -> str:
    """Run a command of `coincide` and return what it writes."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--url", str(service.client.base_url)])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("explicit", [False, True])
def test_a_live_stream_on_a_topic_with_the_producers_timestamps_is_warned_of(
    service: Service, caplog: pytest.LogCaptureFixture, *, explicit: bool
) -> None:
    # A topic that says nothing has the broker's default.
    topic = new_topic(service, "CreateTime" if explicit else None)
    client, path, document = service.client, f"/v1/streams/{fresh()}", stream(service, topic=topic)
    for parameters, status in (({"dry_run": "true"}, 201), ({}, 201), ({}, 200)):
        caplog.clear()
        answer = client.put(path, json=document, params=parameters)
        assert answer.status_code == status
        (warning,) = answer.json()["warnings"]
        assert warning.startswith(f"topic: {topic} has {SETTING}=CreateTime")
        assert warning.endswith(f"set {SETTING}=LogAppendTime on the topic")
        assert warning in caplog.text
    assert client.get(f"{path}/status").json()["topic_problems"] == [
        {"topic": topic, "setting": SETTING, "found": "CreateTime", "needed": "LogAppendTime"}
    ]
    assert "warnings" not in client.get(path).json()
    recorded = client.put(path, json={**document, "clock": "replay"})
    assert (recorded.status_code, recorded.json()["warnings"]) == (200, [])
    assert client.get(f"{path}/status").json()["topic_problems"] == []


def test_topics_that_kafka_stamps_are_not_warned_of(service: Service) -> None:
    client, path = service.client, f"/v1/streams/{fresh()}"
    stamped = new_topic(service, "LogAppendTime")
    for topic in (stamped, f"{service.settings.prefix}-{fresh('created')}"):
        for parameters in ({"dry_run": "true"}, {}):
            answer = client.put(path, json=stream(service, topic=topic), params=parameters)
            assert (answer.is_success, answer.json()["warnings"]) == (True, [])
    assert client.get(f"{path}/status").json()["topic_problems"] == []


@pytest.mark.parametrize(("retention", "is_enough"), [(60_000, False), (-1, True)])
def test_a_retention_that_is_shorter_than_the_buffers_is_warned_of(
    service: Service, retention: int, *, is_enough: bool
) -> None:
    client, names = service.client, [fresh(), fresh()]
    topics = [f"{service.settings.prefix}-{it}" for it in names]
    settings = {SETTING: "LogAppendTime", "retention.ms": str(retention)}
    create_topics(service.settings.bootstrap, dict.fromkeys(topics, 1), settings)
    paths = [f"/v1/streams/{it}" for it in names]
    documents = [{**stream(service, topic=it), "max_delay": "1s"} for it in topics]
    for path, document in zip(paths, documents, strict=True):
        assert client.put(path, json=document).json()["warnings"] == []
        assert client.get(f"{path}/status").json()["topic_problems"] == []
    condition = {
        "kind": "mutual_deadline",
        "a": names[0],
        "b": names[1],
        "window": "1h",
        "threshold": 0.5,
    }
    condition_path = f"/v1/conditions/{fresh()}"
    assert client.put(condition_path, json=condition).is_success
    found = client.get(f"{paths[1]}/status").json()["topic_problems"]
    warnings = client.put(paths[1], json=documents[1]).json()["warnings"]
    if is_enough:
        assert (found, warnings) == ([], [])
        return
    (problem,) = found
    assert (problem["topic"], problem["setting"]) == (topics[1], "retention.ms")
    assert problem["found"] == str(retention)
    assert 3_600_000 < int(problem["needed"]) < 3_700_000
    (warning,) = warnings
    assert warning.startswith(f"topic: {topics[1]} has retention.ms={retention}: ")
    assert warning.endswith(f"set retention.ms={problem['needed']} on the topic")
    assert client.put(f"{condition_path}/pause").is_success
    assert client.get(f"{paths[1]}/status").json()["topic_problems"] == []


@pytest.mark.parametrize("clock", ["live", "replay"])
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_warned_of(service: Service, clock: str, policy: str) -> None:
    name = fresh()
    topic, path = f"{service.settings.prefix}-{name}", f"/v1/streams/{name}"
    settings = {SETTING: "LogAppendTime", "cleanup.policy": policy}
    create_topics(service.settings.bootstrap, {topic: 1}, settings)
    answer = service.client.put(path, json={**stream(service, topic=topic), "clock": clock})
    (warning,) = answer.json()["warnings"]
    assert warning.startswith(f"topic: {topic} has cleanup.policy={policy}: ")
    assert service.client.get(f"{path}/status").json()["topic_problems"] == [
        {"topic": topic, "setting": "cleanup.policy", "found": policy, "needed": "delete"}
    ]


def test_registered_streams_are_checked_when_the_service_starts(
    kafka_bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with running(settings) as service:
        topic = new_topic(service)
        assert service.client.put("/v1/streams/s", json=stream(service, topic=topic)).is_success
    caplog.clear()
    with caplog.at_level(logging.WARNING), running(settings):
        assert f"{topic} has {SETTING}=CreateTime" in caplog.text


def test_heartbeats_must_be_stamped_by_kafka(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    create_topics(kafka_bootstrap, {settings.topics.heartbeats: 1})
    with running(settings) as service:
        (found,) = readiness(service.client)["topic_problems"]
        assert (found["topic"], found["setting"], found["needed"]) == (
            settings.topics.heartbeats,
            SETTING,
            "LogAppendTime",
        )
    fresh_one = fresh_settings(kafka_bootstrap)
    with running(fresh_one) as service:
        assert readiness(service.client)["topic_problems"] == []
        # The sender's own time is not taken.
        heartbeats = fresh_one.topics.heartbeats
        produce(kafka_bootstrap, heartbeats, [Sent(b"{}", timestamp_ms=32_503_680_000_000)])
        (record,) = read_committed(kafka_bootstrap, heartbeats)
        assert record.timestamp_ms < 32_503_680_000_000


def test_reset_of_a_watermark_is_written_once_for_each_partition(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap, name = service.settings.bootstrap, fresh("reset")
    topic = new_topic(service, partitions=2)
    assert service.client.put(f"/v1/streams/{name}", json=stream(service, topic=topic)).is_success
    produce(bootstrap, topic, [Sent(b"{}", partition=1)] * 3)
    answer = service.client.post(f"/v1/streams/{name}/reset-watermark")
    assert (answer.status_code, answer.json()) == (
        202,
        {"name": name, "partitions": {"0": 0, "1": 3}},
    )
    assert answer.headers["location"] == f"/v1/streams/{name}/status"

    def written() -> list[Heartbeat]:
        records = read_committed(bootstrap, service.settings.topics.heartbeats)
        mine = [record for record in records if record.key == name.encode()]
        return [heartbeat_from_record(orjson.loads(record.value or b"")) for record in mine]

    resets = [Heartbeat(name, 0, RESET, 0), Heartbeat(name, 1, RESET, 3)]
    assert written() == resets
    said = command(capsys, service, "reset-watermark", name)
    assert said == (
        f"watermark of {name} reset: partition 0 from offset 0, partition 1 from offset 3\n"
    )
    assert written() == resets * 2
    assert service.client.post("/v1/streams/nobody/reset-watermark").status_code == 404


def test_apply_shows_what_the_service_warns_of(
    service: Service, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, topic = fresh(), new_topic(service)
    file = tmp_path / "streams.json"
    file.write_bytes(orjson.dumps({"kind": "stream", "name": name, **stream(service, topic=topic)}))
    shown = command(capsys, service, "apply", "-f", str(file), "--dry-run")
    assert shown.splitlines()[0] == f"created   stream {name}"
    assert shown.splitlines()[1].startswith(f"warning: topic: {topic} has {SETTING}=CreateTime")
    found = orjson.loads(command(capsys, service, "apply", "-f", str(file), "--json"))
    assert (found["change"], len(found["warnings"])) == ("created", 1)
