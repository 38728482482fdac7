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
    join_pieces,
    joined_offsets,
    select_pieces,
    split_numbers,
    stack_codes,
)

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


@given(PIECES, PIECES)
def test_codes_are_places_in_the_table(first: list[bytes], second: list[bytes]) -> None:
    table = Pieces()
    places = np.arange(len(second))[::-1]
    rows: list[NDArray[np.int64] | int] = [
        table.add(BytesColumn.from_list(first)),
        table.one(b"-"),
        table.add(BytesColumn.from_list([b"unused", *second]).take(places + 1), places),
    ]
    column = table.to_column()
    assert len(column) == len(first) + 1 + len(second)
    for row, expected in zip(rows, (first, [b"-"], second), strict=True):
        codes = stack_codes(len(expected), [row])
        assert join_pieces(column, codes).to_list() == expected


def test_a_piece_may_be_part_of_a_larger_column() -> None:
    column = BytesColumn(np.frombuffer(b"unused,a,bc", np.uint8), np.array([7, 9, 11]))
    table = Pieces()
    table.one(b"first")
    codes = stack_codes(2, [table.add(column)])
    assert join_pieces(table.to_column(), codes).to_list() == [b"a,", b"bc"]


@given(NUMBERS)
def test_numbers_are_written_as_in_their_array(numbers: list[float]) -> None:
    text = json.dumps(numbers, separators=(",", ":")).encode()
    assert split_numbers(text).to_list() == [json.dumps(it).encode() for it in numbers]
