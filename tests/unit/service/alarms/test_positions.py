"""Ids of events: a position and back, and ids that `write_id` did not write."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.alarms.positions import MAX_ID_LENGTH, make_key, make_tag, read_id, write_id
from service.alarms.records import Place
from service.errors import InvalidPositionError

KEY = make_key("cluster", "coincide")
OFFSETS = st.integers(0, 2**63 - 1)
TOPICS = st.dictionaries(
    st.binary(min_size=8, max_size=8), st.lists(OFFSETS, min_size=1), max_size=5
)


def positions_of(topics: dict[bytes, list[int]]) -> dict[Place, int]:
    return {
        Place(tag, partition): offset
        for tag, offsets in topics.items()
        for partition, offset in enumerate(offsets)
    }


@given(TOPICS)
def test_position_is_read_back(topics: dict[bytes, list[int]]) -> None:
    positions = positions_of(topics)
    assert read_id(write_id(positions, KEY), KEY) == positions


def test_id_is_short() -> None:
    topics = {make_tag(f"t{number}", None): [10**6] * 2 for number in range(3)}
    assert len(write_id(positions_of(topics), KEY)) == 72


@given(TOPICS, st.data())
def test_changed_id_is_refused(topics: dict[bytes, list[int]], data: st.DataObject) -> None:
    text = write_id(positions_of(topics), KEY)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(codec="utf-8"))
    changed = text[:at] + letter + text[at + 1 :]
    if changed != text:
        with pytest.raises(InvalidPositionError):
            read_id(changed, KEY)


@given(st.text() | st.binary().map(lambda it: urlsafe_b64encode(it).decode()))
def test_any_string_is_refused(text: str) -> None:
    with pytest.raises(InvalidPositionError):
        read_id(text, KEY)


@pytest.mark.parametrize(
    ("cluster", "prefix"), [("another", "coincide"), ("cluster", "another"), (None, "coincide")]
)
def test_id_of_another_installation_is_refused(cluster: str | None, prefix: str) -> None:
    text = write_id({Place(b"12345678", 0): 5}, KEY)
    with pytest.raises(InvalidPositionError):
        read_id(text, make_key(cluster, prefix))


@given(st.binary(max_size=200), st.sampled_from([0, 100]))
def test_body_with_a_valid_checksum_is_checked_too(body: bytes, more: int) -> None:
    body = b"\x01" + body + b"\xff" * more
    checksum = blake2b(body, key=KEY, digest_size=8).digest()
    text = urlsafe_b64encode(body + checksum).rstrip(b"=").decode()
    try:
        found = read_id(text, KEY)
    except InvalidPositionError:
        return
    # An id that is read is the only one of its positions.
    assert write_id(found, KEY) == text
    assert all(0 <= offset < 2**63 for offset in found.values())


def test_padding_and_length_are_checked() -> None:
    text = write_id({Place(b"12345678", 0): 5}, KEY)
    assert len(urlsafe_b64decode(text + "=" * (-len(text) % 4))) == 19
    for wrong in (text + "=", text + "A" * MAX_ID_LENGTH, "", f" {text}", f"{text}\n"):
        with pytest.raises(InvalidPositionError, match="Last-Event-ID: is not the id"):
            read_id(wrong, KEY)


def test_tag_depends_on_the_topic_id() -> None:
    assert make_tag("t", "one") == make_tag("t", "one")
    assert len({make_tag("t", "one"), make_tag("t", "two"), make_tag("u", None)}) == 3
