"""Records of results, as the job writes them, for tests of their readers."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kafka import Sent

NOON_US = 1_767_268_800_000_000


def headers_of(condition: str, ce_type: str = "coincide.alarm.v1") -> tuple[tuple[str, bytes], ...]:
    """Return the CloudEvents headers of a result."""
    return (
        ("ce_type", ce_type.encode()),
        ("ce_source", f"/coincide/conditions/{condition}".encode()),
    )


def result(
    number: int,
    condition: str = "footsteps",
    key: str = "north",
    *,
    partition: int = -1,
    ce_type: str = "coincide.alarm.v1",
    **fields: Any,  # noqa: ANN401  any JSON value
) -> Sent:
    """Return the record of a result, which was detected `number` seconds after noon."""
    value = {
        "condition": condition,
        "number": number,
        "detected_at": NOON_US + number * 1_000_000,
        **fields,
    }
    return Sent(
        json.dumps(value).encode(),
        key.encode(),
        partition,
        headers=headers_of(condition, ce_type),
    )
