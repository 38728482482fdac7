"""Format of the alarms of timing conditions, plain or factored; read without numpy and numba."""

from __future__ import annotations

from hashlib import blake2b

from correlation.result_format import framed

# Kinds of conditions whose results have this format.
TIMING_KINDS = ("mutual_deadline", "within", "deadline", "delay")
# Format versions of alarms and of factored records.
ALARM_VERSION = 1
FACTORED_VERSION = 1
# CloudEvents type of both kinds of factored record; alarms have the common type.
FACTORED_TYPE = "coincide.alarm.factored.v1"
# Values of field `record` of factored records.
TARGETS, BASE = "targets", "base"
# Values of `decided_by` in alarms with a B.
BY_REGION, BY_PROBE, BY_LOOKUP = "satisfaction_region", "probe", "lookup"
# Value of `decided_by` in alarms without a B.
BY_WATERMARK = "watermark"
# Length of the id of an alarm, in hexadecimal digits.
ID_CHARACTERS = 32


def alarm_id(condition: str, version: int, a_id: bytes, b_id: bytes | None) -> str:
    """Compute the id of an alarm, by which consumers recognise duplicates.

    Parameters
    ----------
    condition, version
        Name and version of the condition that found the pair.
    a_id, b_id : bytes
        Ids of the events; `b_id` is None for an alarm without a B.
    """
    message = alarm_message(condition, version) + framed(a_id)
    if b_id is not None:
        message += framed(b_id)
    return digest_of(message)


def digest_of(message: bytes) -> str:
    """Return the id of an alarm, given the message that identifies it."""
    return blake2b(message, digest_size=ID_CHARACTERS // 2).hexdigest()


def alarm_message(condition: str, version: int) -> bytes:
    """Return the message with which the digests of all alarm ids of a condition start."""
    return framed(condition.encode()) + framed(str(version).encode())
