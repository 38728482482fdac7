"""Records of the audit topic: who wrote what, from where, with which effect.

With access control, every write has a record, in the same Kafka transaction as its config records:
either both are stored or neither is.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from correlation.resources.record_types import RESOURCE_NAME
from correlation.resources.schemas import (
    ANY_OBJECT,
    COUNT,
    FLAG,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    choice,
    constant,
    described,
    headers_of,
    list_of,
    nullable,
    object_of,
)
from service.settings import ROLE_NAMES
from service.transactions import NewRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.resources.records import Resource
    from service.access.callers import Caller

VERSION = 1
Action = Literal["created", "changed", "deleted", "paused", "resumed", "watermark_reset"]
_ACTIONS = ("created", "changed", "deleted", "paused", "resumed", "watermark_reset")
_TYPE = "coincide.audit.v1"
_RESOURCE = nullable(object_of({"version": POSITIVE, "paused": FLAG, "document": ANY_OBJECT}))
AUDIT = RecordType(
    "audit",
    "A write by REST, in the transaction of its config record.",
    object_of(
        {
            "v": constant(VERSION),
            "at": TIME_US,
            "who": object_of(
                {
                    "name": STRING,
                    "role": choice(ROLE_NAMES),
                    "method": choice(["key", "token"]),
                    "names": described(list_of(STRING), "Prefixes that an editor may write."),
                    "key_id": described(nullable(STRING), "Public part of the key; null: a token."),
                }
            ),
            "address": described(nullable(STRING), "Address of the connection."),
            "action": choice(_ACTIONS),
            "kind": choice(["stream", "template", "condition", "job"]),
            "name": RESOURCE_NAME,
            "before": described(_RESOURCE, "null: it did not exist."),
            "after": described(_RESOURCE, "null: it was deleted."),
            "config_offset": described(
                nullable(COUNT), "Offset of the config record; null: none was written."
            ),
        }
    ),
    "kind/NAME",
    headers_of(
        {
            "content-type": constant("application/json"),
            "ce_specversion": constant("1.0"),
            "ce_type": constant(_TYPE),
            "ce_source": constant("/coincide/service"),
            "ce_time": {"type": "string", "format": "date-time"},
            "ce_id": STRING,
        }
    ),
    "audit",
)


class Effect(NamedTuple):
    """The effect of a write on a resource; None: it does not exist."""

    action: Action
    before: Resource | None
    after: Resource | None


def effect_of(before: Resource | None, after: Resource | None) -> Effect:
    """Return the effect of a write from the resource before and after it; one of them exists."""
    action: Action = "changed"
    if before is None:
        action = "created"
    elif after is None:
        action = "deleted"
    elif before.paused != after.paused and before.version == after.version:
        action = "paused" if after.paused else "resumed"
    return Effect(action, before, after)


def audit_records(
    effects: Sequence[Effect], by: Caller, now_us: int, offsets: Sequence[int | None]
) -> list[NewRecord]:
    """Return the records of a write.

    Parameters
    ----------
    effects : sequence of Effect
        Its effects.
    by : Caller
        Who wrote.
    now_us : int
        Time of the write, in µs since 1970.
    offsets : sequence of int or None
        Offsets of the config records, one for each effect; None: no record was written.
    """
    who = {
        "name": by.name,
        "role": by.role.label,
        "method": by.method,
        "names": list(by.names),
        "key_id": by.key_id,
    }
    records = []
    for effect, offset in zip(effects, offsets, strict=True):
        resource = effect.after or effect.before
        if resource is None:
            continue
        value = {
            "v": VERSION,
            "at": now_us,
            "who": who,
            "address": by.address,
            "action": effect.action,
            "kind": resource.kind,
            "name": resource.name,
            "before": _shown(effect.before),
            "after": _shown(effect.after),
            "config_offset": offset,
        }
        records.append(NewRecord(resource.key, orjson.dumps(value), _headers(now_us)))
    return records


def _shown(resource: Resource | None) -> dict[str, Any] | None:
    if resource is None:
        return None
    return {
        "version": resource.version,
        "paused": resource.paused,
        "document": resource.document,
    }


def _headers(now_us: int) -> tuple[tuple[str, bytes], ...]:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now_us)
    return (
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_type", _TYPE.encode()),
        ("ce_source", b"/coincide/service"),
        ("ce_time", time.isoformat().encode()),
        ("ce_id", uuid.uuid4().hex.encode()),
    )
