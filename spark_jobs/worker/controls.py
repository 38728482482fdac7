"""Records of the config topic in the form in which they are sent to the slots."""

from __future__ import annotations

import orjson

from correlation.config_records import read_key
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError

# Longer records of a newer version are not stored, because every slot stores them in every batch.
_MAX_KEPT_BYTES = 65_536


def names_resource(key: bytes) -> bool:
    """Return whether a key of the config topic names a resource."""
    try:
        read_key(key)
    except UnreadableRecordError:
        return False
    return True


def kept_record(value: bytes, error: UnknownRecordVersionError) -> object:
    """Return the form in which the slots store a record of a newer version."""
    if len(value) <= _MAX_KEPT_BYTES:
        return orjson.loads(value)
    return f"{error}; the record exceeds {_MAX_KEPT_BYTES} bytes: write it again after the upgrade"
