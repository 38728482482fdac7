"""A record of a result in one line, as the reader of its kind describes it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from correlation.kinds import open_readers

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

# A description is part of each item of a list, beside its record.
_MAX_CHARACTERS = 1_000


def describe_record(record: Mapping[str, Any]) -> str | None:
    """Return the description of a record that holds one result by itself.

    Parameters
    ----------
    record : mapping
        Value of the record.

    Returns
    -------
    str or None
        None if its kind is unknown, it is part of factored output, or it is not valid.
    """
    try:
        # New readers: records are described in any order, and independently of each other.
        reader = next((it for it in open_readers() if it.claims(record)), None)
        results = [] if reader is None else list(reader.read(record))
        if reader is None or len(results) != 1:
            return None
        return reader.describe(results[0])[:_MAX_CHARACTERS]
    except Exception:  # noqa: BLE001 - whatever a kind of another package raises, the list is shown
        _log.debug("a record cannot be described", exc_info=True)
        return None
