"""Numbers of byte strings, against a dictionary; and the hash function, against its reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn
from correlation.buffers.numbering import Numbering, _sip_hash_kernel

VALUES = st.lists(st.binary(max_size=20) | st.sampled_from([b"", b"a", b"b" * 9]), max_size=30)


@given(st.lists(VALUES, max_size=4))
def test_values_are_numbered_in_order_of_their_first_use(parts: list[list[bytes]]) -> None:
    found, numbers = Numbering(), dict[bytes, int]()
    for values in parts:
        column = BytesColumn.from_list(values)
        expected = [numbers.setdefault(it, len(numbers)) for it in values]
        assert found.number(column.data, column.offsets).tolist() == expected
    assert len(found) == len(numbers)
    assert BytesColumn(*found.values()).to_list() == list(numbers)


def test_many_values_share_the_places_of_the_table() -> None:
    values = [b"%d" % (number % 5_000) for number in range(20_000)]
    column = BytesColumn.from_list(values)
    found = Numbering()
    assert found.number(column.data, column.offsets).tolist() == [*range(5_000)] * 4
    assert len(found) == 5_000


def test_offsets_may_begin_anywhere() -> None:
    column = BytesColumn.from_list([b"skipped", b"b", b"a", b"b"])
    found = Numbering()
    assert found.number(column.data, column.offsets[1:]).tolist() == [0, 1, 0]
    assert BytesColumn(*found.values()).to_list() == [b"b", b"a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    # Python's hashes of byte strings with PYTHONHASHSEED=0: SipHash-1-3 with the key 0.
    [
        (b"a", 0x407448D2B89B1813),
        (b"abcdefgh", 0x3F7B849C0B8E35EA),
        (b"0123456789abcdef!", 0x9463628F6C8882CA),
        (bytes(range(256)), 0x31AE646AFBA70308),
    ],
)
def test_hashes_are_those_of_the_reference(value: bytes, expected: int) -> None:
    data = np.frombuffer(value, np.uint8)
    with np.errstate(over="ignore"):
        found = _sip_hash_kernel(data, 0, len(data), np.zeros(2, np.uint64))
    assert int(found) == expected
