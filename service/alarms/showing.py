"""Records of results as the reader of their kind shows them.

Any producer may write to a topic of results, and kinds of other packages may raise any exception: a
record that cannot be shown is still listed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import orjson

from correlation.kinds import KINDS, open_readers
from correlation.reporting import ShownRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import Condition
    from correlation.resources.streams import Stream

_log = logging.getLogger(__name__)

# A description is part of each item of a list, beside its record.
_MAX_CHARACTERS = 1_000


def show_record(record: Mapping[str, Any]) -> ShownRecord | None:
    """Return how a record is shown.

    Parameters
    ----------
    record : mapping
        Value of the record.

    Returns
    -------
    ShownRecord or None
        None if its kind is unknown or it is not valid.
    """
    try:
        # New readers: records are shown in any order, and independently of each other.
        reader = next((it for it in open_readers() if it.claims(record)), None)
        if reader is None:
            return None
        description, events = reader.show(record)
        if len(description) > _MAX_CHARACTERS:
            description = f"{description[: _MAX_CHARACTERS - 1]}…"
        return ShownRecord(description, dict(events))
    except Exception:  # noqa: BLE001 - see the module
        _log.debug("a record cannot be shown", exc_info=True)
        return None


def is_writable(value: object) -> bool:
    """Return whether a value can be written as JSON: orjson reads deeper values than it writes."""
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def request_explanation(
    condition: Condition, streams: Mapping[str, Stream], record: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the body of a request to explain a record.

    Parameters
    ----------
    condition : Condition
        Its condition.
    streams : mapping of name to Stream
        The streams of the condition.
    record : mapping
        Value of the record.

    Returns
    -------
    dict or None
        None if the record cannot be explained.
    """
    kind = KINDS[condition.kind]
    try:
        events = dict(kind.events_to_explain(condition, streams, record))
    except Exception:  # noqa: BLE001 - see the module
        _log.debug("a record cannot be explained", exc_info=True)
        return None
    if not events or not is_writable(events):
        return None
    return {"events": events} if kind.names_events else events
