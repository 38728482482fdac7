"""Byte strings joined from pieces."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn
from correlation.buffers.joining import (
    MISSING,
    Pieces,
    frame_values,
    join_lists,
    join_pieces,
    joined_offsets,
    select_pieces,
    write_numbers,
)
from correlation.operators import encode_json
from correlation.result_format import framed

PIECES = st.lists(st.binary(max_size=40), min_size=1, max_size=9)
NUMBERS = st.lists(
    st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    min_size=1,
    max_size=20,
)


@given(PIECES, st.data())
def test_byte_strings_are_joined_from_the_pieces_of_their_codes(
    pieces: list[bytes], data: st.DataObject
) -> None:
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(0, 6)))
    size = shape[0] * shape[1]
    drawn = data.draw(st.lists(st.integers(-1, len(pieces) - 1), min_size=size, max_size=size))
    codes = np.array(drawn, np.int32).reshape(shape)
    column = BytesColumn.from_list(pieces)
    expected = [
        b"".join(pieces[code] for code in row if code != MISSING) for row in codes.T.tolist()
    ]
    assert join_pieces(column, codes).to_list() == expected
    assert np.diff(joined_offsets(column, codes)).tolist() == [len(it) for it in expected]
    fewer, rows = select_pieces(column, list(codes))
    assert join_pieces(fewer, np.stack(rows)).to_list() == expected
    assert len(fewer) == len(set(drawn) - {MISSING})


@given(PIECES, st.lists(st.integers(-1, 8), max_size=9))
def test_lists_and_pieces_are_joined_alike(values: list[bytes], drawn: list[int]) -> None:
    count = len(values)
    table = Pieces()
    lists: list[list[bytes] | bytes] = []
    codes: list[NDArray[np.int64] | bytes] = []
    for number in drawn:
        # A constant part, or the values from some place on.
        if number < 0:
            lists.append(b"-")
            codes.append(b"-")
            continue
        places = (np.arange(count) + number) % count
        lists.append([values[place] for place in places])
        codes.append(table.add(BytesColumn.from_list([b"unused", *values]), places + 1))
    lists.append(values)
    codes.append(table.add(BytesColumn.from_list(values)))
    stacked = table.stack(count, codes)
    assert join_pieces(table.to_column(), stacked).to_list() == join_lists(count, lists)


def test_consecutive_constant_parts_are_one_piece() -> None:
    table = Pieces()
    codes = table.stack(2, [b"a", b"b", table.add(BytesColumn.from_list([b"1", b"2"])), b"c"])
    assert len(codes) == 3
    assert table.to_column().to_list() == [b"1", b"2", b"ab", b"c"]


def test_a_piece_may_be_part_of_a_larger_column() -> None:
    column = BytesColumn(np.frombuffer(b"unused,a,bc", np.uint8), np.array([7, 9, 11]))
    table = Pieces()
    codes = table.stack(2, [b"first ", table.add(column)])
    assert join_pieces(table.to_column(), codes).to_list() == [b"first a,", b"first bc"]


@given(NUMBERS)
def test_numbers_are_written_as_one_by_one(numbers: list[float]) -> None:
    found = write_numbers(numbers, encode_json).to_list()
    assert found == [json.dumps(it).encode() for it in numbers]


@given(PIECES)
def test_values_are_framed_as_one_by_one(values: list[bytes]) -> None:
    column = BytesColumn.from_list([b"unused", *values]).view(1, len(values) + 1)
    assert frame_values(column).to_list() == [framed(it) for it in values]
