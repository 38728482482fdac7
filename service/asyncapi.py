"""The AsyncAPI document of an installation: its topics, their records, who writes and reads them.

The document follows AsyncAPI 3.0 with the Kafka bindings 0.5. The types of the records are declared
beside the code that writes them (`RecordType`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from correlation.condition_types import document_type, result_types
from correlation.engine.record_types import (
    HEARTBEAT,
    JOB,
    KEPT_SHARES,
    MARK,
    MERGED,
    MERGED_TOTALS,
    OMITTED_STATE,
    POSITION,
    REMOVED_MERGED,
    REMOVED_STATE,
    SLOT,
    TOTALS,
)
from correlation.errors import CorrelationError
from correlation.kinds import KINDS
from correlation.newest_records import DELETED
from correlation.parsing import record_types as event_types
from correlation.parsing.record_types import CANONICAL_EVENTS, MAPPED_EVENT
from correlation.resources.record_types import JOB_SLOTS, STREAM, TEMPLATE
from correlation.resources.topics import (
    ALARMS,
    DEAD_LETTER,
    LATE,
    LATE_MISSING,
    REFUSED_RESULT,
    omitted_value,
)
from service.audit import AUDIT
from service.own_topics import own_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from correlation.condition_kind import ConditionKind
    from correlation.resources.schemas import RecordType
    from correlation.resources.topics import Channel
    from service.own_topics import TopicSpec
    from service.settings import Settings

_VERSION = "3.0.0"
_BINDING = "0.5.0"
_SERVICE, _JOB = "service", "job"
_OUTPUT = "output_topic"
_DESCRIPTION = """Topics of an installation of Coincide, and their records.

Operations are those of the service and of the job: `send` writes to a topic, `receive` reads from
it. Read results with `isolation.level=read_committed`: the job writes them in transactions."""


class _Use(NamedTuple):
    """Description of a topic, the components that write and read it, and other clients."""

    description: str
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    clients: str


_USES: Mapping[str, _Use] = {
    "config": _Use(
        "Streams, conditions and templates, one record each, and the number of slots of the job. "
        "REST writes them.",
        (_SERVICE,),
        (_SERVICE, _JOB),
        "Do not write to it.",
    ),
    "heartbeats": _Use(
        "Progress of idle and of recorded streams, and resets of watermarks.",
        (_JOB, _SERVICE),
        (_JOB,),
        "Producers of recorded streams write to it.",
    ),
    "alarms": _Use(
        "Results of conditions without an output topic, except those of a channel of their kind. "
        "The service reads it for `GET /v1/alarms`.",
        (_JOB,),
        (_SERVICE,),
        "Consumers read it.",
    ),
    "late": _Use(
        "Late events, unchanged, with additional headers.", (_JOB,), (), "Consumers may read it."
    ),
    "dead-letter": _Use(
        "Records that could not be processed, unchanged, with additional headers.",
        (_JOB,),
        (),
        "Consumers may read it.",
    ),
    "metrics": _Use(
        "Reports of each slot and of the job, which the service exposes for Prometheus.",
        (_JOB,),
        (_SERVICE,),
        "Read the metrics of the service instead: the records may change.",
    ),
    "state": _Use(
        "Positions and totals of the slots, from which the job rebuilds its state.",
        (_JOB,),
        (_JOB,),
        "Do not read or write this topic: the records may change.",
    ),
    "audit": _Use(
        "Writes by REST while access control is on: who, when, from where, before and after.",
        (_SERVICE,),
        (),
        "Auditors read it.",
    ),
    event_types.TOPIC: _Use(
        "Topic of a registered stream. The service reads it for explanations and samples.",
        (),
        (_JOB, _SERVICE),
        "Producers of events write to it.",
    ),
    _OUTPUT: _Use(
        "`output_topic` of a condition, instead of the topic of alarms or of a channel that is not "
        "compacted. The service reads it for `GET /v1/alarms`.",
        (_JOB,),
        (_SERVICE,),
        "Consumers read it.",
    ),
}
_PARAMETERS = {
    event_types.TOPIC: ("topic", "`topic` of a stream."),
    _OUTPUT: (_OUTPUT, "`output_topic` of a condition."),
}


def record_types(kinds: Iterable[ConditionKind]) -> dict[str, tuple[RecordType, ...]]:
    """Return the types of the records of every topic, by its name without the prefix.

    The topics of all streams are under "events", the output topics under "output_topic".

    Parameters
    ----------
    kinds : iterable of ConditionKind
        Kinds of conditions of the installation.

    Raises
    ------
    CorrelationError
        When two types have the same name, or a type has a topic that its kind does not declare.
    """
    kinds = list(kinds)
    channels = {it.name: it for kind in kinds for it in (ALARMS, *kind.channels)}
    appended = [it.name for it in channels.values() if not it.compacted]
    results = list(chain.from_iterable(_results(kind) for kind in kinds))
    types = [
        *(STREAM, TEMPLATE, *map(document_type, kinds), JOB_SLOTS, DELETED, HEARTBEAT, SLOT, JOB),
        *(
            POSITION,
            TOTALS,
            OMITTED_STATE,
            REMOVED_STATE,
            MARK,
            MERGED,
            REMOVED_MERGED,
            MERGED_TOTALS,
            KEPT_SHARES,
            AUDIT,
            *results,
            LATE,
            LATE_MISSING,
            DEAD_LETTER,
            REFUSED_RESULT,
        ),
        *(omitted_value(name) for name in (*appended, "late", "dead-letter")),
        *(*CANONICAL_EVENTS, MAPPED_EVENT),
    ]
    found: dict[str, dict[str, RecordType]] = {}
    named: dict[str, RecordType] = {}
    for it in types:
        known = named.setdefault(it.name, it)
        if replace(known, topic=it.topic) != it:
            raise CorrelationError(f"record type {it.name!r}: is declared twice; use another name")
        found.setdefault(it.topic, {})[it.name] = it
    found[_OUTPUT] = {name: it for topic in appended for name, it in found[topic].items()}
    return {topic: tuple(them.values()) for topic, them in found.items()}


def _results(kind: ConditionKind) -> Iterable[RecordType]:
    topics = {it.name for it in (ALARMS, *kind.channels)}
    for it in result_types(kind):
        if it.topic not in topics:
            raise CorrelationError(
                f"{kind.name}: record type {it.name!r} has topic {it.topic!r}; use alarms, or the "
                "name of a channel of the kind"
            )
        yield it


def make_document(
    settings: Settings, kinds: Iterable[ConditionKind] = tuple(KINDS.values())
) -> dict[str, Any]:
    """Return the AsyncAPI document of an installation.

    Parameters
    ----------
    settings : Settings
        Prefix of the topics, and properties of the topics that the service creates.
    kinds : iterable of ConditionKind
        Kinds of conditions of the installation.
    """
    types = record_types(kinds)
    topics = settings.topics
    uses = {**_USES, **{it.name: _use_of(it) for it in topics.channels}}
    specs = {it.name.removeprefix(f"{topics.prefix}."): it for it in own_topics(settings)}
    return {
        "asyncapi": _VERSION,
        "info": {"title": "Coincide", "version": "1", "description": _DESCRIPTION},
        "defaultContentType": "application/json",
        "channels": {
            name: _channel(name, uses[name], specs.get(name), found, settings.replication_factor)
            for name, found in types.items()
        },
        "operations": {
            f"{component}_{action}s_{name}": {
                "action": action,
                "channel": {"$ref": f"#/channels/{name}"},
                "summary": f"The {component} {verb} {specs[name].name if name in specs else name}.",
                "tags": [{"name": component}],
            }
            for name in types
            for action, verb, components in (
                ("send", "writes to", uses[name].senders),
                ("receive", "reads", uses[name].receivers),
            )
            for component in components
        },
        "components": {
            "messages": {it.name: _message(it) for it in chain.from_iterable(types.values())}
        },
    }


def _use_of(channel: Channel) -> _Use:
    return _Use(channel.description, (_JOB,), (_SERVICE,), "Consumers read it.")


def _channel(
    name: str, use: _Use, spec: TopicSpec | None, types: Iterable[RecordType], replicas: int
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": name,
        "description": f"{use.description} {use.clients}",
        "messages": {it.name: {"$ref": f"#/components/messages/{it.name}"} for it in types},
    }
    if spec is None:
        parameter, description = _PARAMETERS[name]
        return {
            "address": f"{{{parameter}}}",
            **found,
            "parameters": {parameter: {"description": description}},
        }
    binding = {
        "topic": spec.name,
        "partitions": spec.partitions,
        "replicas": replicas,
        "topicConfiguration": {
            setting: value.split(",") if setting == "cleanup.policy" else _number(value)
            for setting, value in spec.settings.items()
        },
        "bindingVersion": _BINDING,
    }
    return {"address": spec.name, **found, "bindings": {"kafka": binding}}


def _number(value: str) -> str | int:
    return int(value) if value.removeprefix("-").isdecimal() else value


def _message(found: RecordType) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.name.replace("_", " ").capitalize(),
        "summary": found.summary,
        "contentType": found.content_type,
        "headers": found.headers,
        "payload": found.value,
        "bindings": {
            "kafka": {
                "key": {"type": "string", "description": found.key},
                "bindingVersion": _BINDING,
            }
        },
    }
