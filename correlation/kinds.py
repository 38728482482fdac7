"""Registry of the kinds of conditions: built-in kinds and entry points of other packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from correlation.errors import CorrelationError, InvalidFieldError
from correlation.event_query.kind import EVENT_QUERY_KIND
from correlation.resources.checks import check_topic
from correlation.resources.records import require
from correlation.resources.topics import Topics
from correlation.timing.kinds import TIMING_KINDS
from correlation.topk.kind import TOPK_KIND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from correlation.condition_kind import ConditionKind
    from correlation.operators import Condition
    from correlation.reporting import Gauge, Ratio, ResultReader
    from correlation.resources.records import Resource
    from correlation.resources.topics import Channel

# Packages register further kinds as an entry point of this group: an iterable of ConditionKind.
ENTRY_POINTS = "coincide.condition_kinds"
# With the longest prefix of an installation, 200 characters, a topic fits Kafka's limit of 249.
CHANNEL_NAME_LENGTH = 32


def _all_kinds() -> dict[str, ConditionKind]:
    found = {kind.name: kind for kind in (*TIMING_KINDS, EVENT_QUERY_KIND, TOPK_KIND)}
    for point in entry_points(group=ENTRY_POINTS):
        for kind in point.load():
            if kind.name in found:
                raise CorrelationError(f"{point.value}: kind {kind.name!r} is already registered")
            found[kind.name] = kind
    return found


def channels_of(kinds: Iterable[ConditionKind]) -> tuple[Channel, ...]:
    """Return the channels of kinds, each once.

    Raises
    ------
    CorrelationError
        When channels differ but have the same topic, a channel has the topic of the installation,
        or the lists of a kind are not on a compacted channel of the kind.
    InvalidFieldError
        When the name of a channel is not valid in a topic.
    """
    found: dict[str, Channel] = {}
    taken = {_as_metric(it) for it in (*Topics("").common(), Topics("").audit)}
    for kind in kinds:
        for channel in kind.channels:
            check_topic(channel.name, f"{kind.name}: channel")
            name = _as_metric(f".{channel.name}")
            if len(channel.name) > CHANNEL_NAME_LENGTH:
                raise CorrelationError(
                    f"{kind.name}: channel {channel.name!r} has {len(channel.name)} characters; "
                    f"use at most {CHANNEL_NAME_LENGTH}"
                )
            if name in taken or found.setdefault(name, channel) != channel:
                raise CorrelationError(
                    f"{kind.name}: channel {channel.name!r} is the name of another topic or channel"
                    "; use another name"
                )
        lists = kind.lists
        if lists is not None and not (lists.channel in kind.channels and lists.channel.compacted):
            raise CorrelationError(
                f"{kind.name}: its lists need a compacted channel; add it to `channels`"
            )
    return tuple(found.values())


def _as_metric(topic: str) -> str:
    """Return the name that Kafka uses in metrics; two topics must not have the same."""
    return topic.replace(".", "_")


KINDS: Mapping[str, ConditionKind] = MappingProxyType(_all_kinds())
CHANNELS = channels_of(KINDS.values())
GAUGES: Mapping[str, Gauge] = MappingProxyType(
    {name: gauge for kind in KINDS.values() for name, gauge in kind.gauges.items()}
)
RATIOS: Mapping[str, Ratio] = MappingProxyType(
    {name: ratio for kind in KINDS.values() for name, ratio in kind.ratios.items()}
)


def topics_of(prefix: str) -> Topics:
    """Return the topics of the installation with a prefix, with the channels of all kinds."""
    return Topics(prefix, CHANNELS)


def to_condition(resource: Resource) -> Condition:
    """Return the condition that a resource describes.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    return condition_from_document(resource.name, resource.version, resource.document)


def condition_from_document(name: str, version: int, document: Mapping[str, Any]) -> Condition:
    """Read a condition of any kind from its normalised document.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    kind = KINDS.get(document.get("kind", ""))
    if kind is None:
        raise InvalidFieldError(
            "kind", f"{document.get('kind')!r} is unknown", f"use one of: {', '.join(KINDS)}"
        )
    values = {}
    for field in kind.fields:
        if field.required:
            values[field.stored_name] = require(document, field.stored_name)
        else:
            values[field.stored_name] = document.get(field.stored_name, field.default)
    return kind.build(name, version, values)


def open_readers() -> list[ResultReader]:
    """Return new readers of the output records of all kinds; kinds may share a reader."""
    # In the order of the kinds: a foreign record may be claimed by several.
    shared = dict.fromkeys(it.open_reader for it in KINDS.values() if it.open_reader is not None)
    own = [kind.reader() for kind in KINDS.values() if kind.open_reader is None]
    return [*(open_reader() for open_reader in shared), *own]
