"""The AsyncAPI document: its structure, its topics, kinds without schemas, faulty kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema_rs import Draft7Validator, meta

from correlation.errors import CorrelationError
from correlation.kinds import KINDS
from correlation.resources.schemas import ANY_OBJECT, RecordType
from correlation.resources.topics import Channel
from service.asyncapi import make_document, record_types
from service.settings import Settings
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.condition_kind import ConditionKind

SETTINGS = Settings(bootstrap="127.0.0.1:1", prefix="team.a", event_partitions=3)
DOCUMENT = make_document(SETTINGS)
MESSAGES = DOCUMENT["components"]["messages"]
# Records whose values, or whose additional fields, are not written by this software.
OPEN = {"event_interval", "event_time", "event_template", "event_histogram", "event_mapped"}


def references(found: object) -> Iterator[str]:
    """Yield the references of a document."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(found, list):
        for value in found:
            yield from references(value)


def test_references_lead_to_objects() -> None:
    found = set(references(DOCUMENT))
    assert {f"#/components/messages/{name}" for name in MESSAGES} <= found
    for reference in found:
        target: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        assert isinstance(target, dict)


def test_every_topic_of_the_installation_has_a_channel() -> None:
    channels = DOCUMENT["channels"]
    addresses = {it["address"] for it in channels.values()}
    assert addresses == {*SETTINGS.topics.all(), "{topic}", "{output_topic}"}
    assert all(it["messages"] for it in channels.values())
    used = {it["channel"]["$ref"].removeprefix("#/channels/") for it in operations().values()}
    assert used == set(channels)


def operations() -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["operations"]
    return found


def test_operations_name_who_writes_and_who_reads() -> None:
    by_topic: dict[str, list[str]] = {}
    for it in operations().values():
        topic = it["channel"]["$ref"].removeprefix("#/channels/")
        by_topic.setdefault(topic, []).append(f"{it['tags'][0]['name']} {it['action']}")
    assert by_topic["config"] == ["service send", "service receive", "job receive"]
    assert by_topic["metrics"] == ["job send", "service receive"]
    assert by_topic["state"] == ["job send", "job receive"]
    for name in ("alarms", "topk", "topk.current", "output_topic"):
        assert by_topic[name] == ["job send", "service receive"]
    assert by_topic["heartbeats"] == ["job send", "service send", "job receive"]
    assert by_topic["events"] == ["job receive", "service receive"]


def test_channels_have_the_properties_with_which_the_service_creates_topics() -> None:
    bindings = {
        name: it["bindings"]["kafka"]
        for name, it in DOCUMENT["channels"].items()
        if "bindings" in it
    }
    assert bindings["alarms"] == {
        "topic": "team.a.alarms",
        "partitions": 3,
        "replicas": 1,
        "topicConfiguration": {"cleanup.policy": ["delete"]},
        "bindingVersion": "0.5.0",
    }
    assert bindings["config"]["partitions"] == 1
    assert bindings["state"]["partitions"] == 1
    for name in ("topk.current", "state"):
        assert bindings[name]["topicConfiguration"]["cleanup.policy"] == ["compact"]
    assert bindings["heartbeats"]["topicConfiguration"]["message.timestamp.type"] == "LogAppendTime"


def test_schemas_are_valid_and_refuse_fields_that_they_do_not_name() -> None:
    for name, it in MESSAGES.items():
        for part in ("headers", "payload"):
            schema = {"$schema": "http://json-schema.org/draft-07/schema#", **it[part]}
            meta.validate(schema)
            Draft7Validator(schema)
        if name not in OPEN:
            assert all(map(is_closed, objects(it["payload"]))), name


def objects(schema: object) -> Iterator[dict[str, Any]]:
    """Yield the schemas that list properties."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def is_closed(schema: dict[str, Any]) -> bool:
    return schema["additionalProperties"] is False


def other_kind(**changes: Any) -> ConditionKind:  # noqa: ANN401 - fields of a kind
    return replace(KINDS["within"], name="other", **changes)


def test_kind_without_types_is_described_as_any_object() -> None:
    channel = Channel("other.current", "Lists.", compacted=True)
    found = record_types([other_kind(records=(), channels=(channel,))])
    (alarm,) = [it for it in found["alarms"] if it.name != "omitted_value"]
    assert (alarm.name, alarm.value) == ("other_alarms", ANY_OBJECT)
    assert "declares no schema" in alarm.summary
    (present,) = found["other.current"]
    assert Draft7Validator(dict(present.value)).is_valid(None)
    assert [it.name for it in found["config"]][2:3] == ["other_condition"]


def test_types_with_equal_names_are_refused() -> None:
    (first, *_) = KINDS["within"].records
    changed = replace(first, summary="Another summary.")
    with pytest.raises(CorrelationError, match="record type 'pair_alarm': is declared twice"):
        record_types([KINDS["within"], other_kind(records=(changed,))])


def test_type_of_a_topic_that_its_kind_does_not_declare_is_refused() -> None:
    wrong = RecordType("wrong", "Wrong.", ANY_OBJECT, "Any.", topic="metrics")
    with pytest.raises(CorrelationError, match=naming("'wrong'", "alarms", "name of a channel")):
        record_types([other_kind(records=(wrong,))])
