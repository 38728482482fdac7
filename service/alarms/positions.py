"""Ids of events: the position of a reader in all topics, as a short string.

An id holds the next offset of each partition, so that a reader continues exactly after the event,
even after a restart of the service or at another instance of it. Topics are named by tags of
Kafka's topic ids: offsets of a topic that was deleted and created again are not mistaken for those
of the new one. A checksum with the key of the installation detects ids of other origin. It is not a
secret: a reader may read all followed topics anyway.

Layout before base64url: version (1 byte); for each topic, in the order of the tags, the tag, the
number of its partitions, and their offsets; the checksum. Numbers are LEB128.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest
from itertools import groupby
from typing import TYPE_CHECKING

from service.alarms.records import Place
from service.errors import FieldProblem, InvalidPositionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.alarms.memory import Positions

_VERSION = b"\x01"
_TAG_BYTES = 8
_SUM_BYTES = 8
# About 8,000 partitions; a longer header is refused by most servers.
MAX_ID_LENGTH = 32_768
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_OFFSETS = 2**63
_PARTITIONS = 2**31
_CONTINUED = 0x80
_SEVEN_BITS = 0x7F
FIELD = "Last-Event-ID"


def make_tag(topic: str, topic_id: str | None) -> bytes:
    """Return the tag of a topic; without an id, that of its name."""
    return blake2b(f"{topic}\0{topic_id or ''}".encode(), digest_size=_TAG_BYTES).digest()


def make_key(cluster_id: str | None, prefix: str) -> bytes:
    """Return the key of an installation."""
    return blake2b(f"{cluster_id or ''}\0{prefix}".encode(), digest_size=32).digest()


def write_id(positions: Positions, key: bytes) -> str:
    """Return the id of a position.

    Parameters
    ----------
    positions : dict
        Next offset of partitions 0, 1, … of each topic.
    key : bytes
        Key of the installation.
    """
    body = bytearray(_VERSION)
    for tag, group in groupby(sorted(positions.items()), key=lambda it: it[0].tag):
        offsets = [offset for _, offset in group]
        body += tag
        for number in (len(offsets), *offsets):
            body += _write_number(number)
    return urlsafe_b64encode(bytes(body) + _checksum(body, key)).rstrip(b"=").decode()


def read_id(text: str, key: bytes) -> Positions:
    """Return the position of an id.

    Raises
    ------
    InvalidPositionError
        When `write_id` did not return the id with the same key.
    """
    if len(text) > MAX_ID_LENGTH or not _BASE64URL.fullmatch(text):
        raise invalid_position()
    try:
        found = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise invalid_position() from None
    body, checksum = found[:-_SUM_BYTES], found[-_SUM_BYTES:]
    if not body.startswith(_VERSION) or not compare_digest(checksum, _checksum(body, key)):
        raise invalid_position()
    try:
        positions = dict(_read_topics(body))
    except (IndexError, ValueError):
        raise invalid_position() from None
    # Each position has one id: other spellings of it are refused.
    if write_id(positions, key) != text:
        raise invalid_position()
    return positions


def _read_topics(body: bytes) -> Iterator[tuple[Place, int]]:
    """Yield the partitions and offsets; raise IndexError or ValueError if they are not valid."""
    at = len(_VERSION)
    while at < len(body):
        tag = body[at : at + _TAG_BYTES]
        count, at = _read_number(body, at + _TAG_BYTES, _PARTITIONS)
        for partition in range(count):
            offset, at = _read_number(body, at, _OFFSETS)
            yield Place(tag, partition), offset


def _write_number(number: int) -> bytes:
    found = bytearray()
    while number > _SEVEN_BITS:
        found.append(number & _SEVEN_BITS | _CONTINUED)
        number >>= 7
    found.append(number)
    return bytes(found)


def _read_number(body: bytes, at: int, limit: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[at]
        at += 1
        number |= (byte & _SEVEN_BITS) << shift
        if number >= limit:
            raise ValueError("the number is too large")
        if byte < _CONTINUED:
            return number, at
        shift += 7


def _checksum(body: bytes | bytearray, key: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=_SUM_BYTES).digest()


def invalid_position() -> InvalidPositionError:
    """Return the error of an id that is not valid."""
    problem = FieldProblem(
        FIELD, "is not the id of an event of this installation", "leave it out, or send the last id"
    )
    return InvalidPositionError(f"{FIELD}: {problem.problem}", (problem,))
