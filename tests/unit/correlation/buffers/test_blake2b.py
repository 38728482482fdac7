"""Digests of many messages equal those of the standard library."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.blake2b import digest_messages
from correlation.buffers.columns import BytesColumn

BLOCK = 128


def expected(messages: list[bytes]) -> list[bytes]:
    return [blake2b(it, digest_size=16).hexdigest().encode() for it in messages]


@given(st.lists(st.binary(max_size=300), max_size=9))
def test_digests_are_those_of_the_standard_library(messages: list[bytes]) -> None:
    assert digest_messages(BytesColumn.from_list(messages)).to_list() == expected(messages)


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_digests_of_whole_blocks_and_of_one_byte_more_or_less(blocks: int, more: int) -> None:
    messages = [bytes(range(256)) * 2, b"\xff" * max(blocks * BLOCK + more, 0), b""]
    assert digest_messages(BytesColumn.from_list(messages)).to_list() == expected(messages)


def test_messages_may_begin_anywhere_in_their_data() -> None:
    data = np.frombuffer(b"unused, message", np.uint8)
    found = digest_messages(BytesColumn(data, np.array([8, 8, 15])))
    assert found.to_list() == expected([b"", b"message"])
