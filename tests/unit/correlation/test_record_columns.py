"""Records of results as columns."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.operators import OutputRecord
from correlation.record_columns import RecordColumns, collect_records

RECORDS = st.lists(
    st.builds(
        OutputRecord,
        st.binary(max_size=9),
        st.none() | st.binary(max_size=30),
        st.text(st.characters(codec="utf-8"), max_size=9),
    ),
    min_size=1,
    max_size=30,
)


@given(RECORDS)
def test_records_come_back_from_columns(records: list[OutputRecord]) -> None:
    columns = RecordColumns.of(records)
    assert len(columns) == len(records)
    assert list(columns.records()) == records
    assert columns.idents() == [it.ident.encode() for it in records]


@given(RECORDS, st.integers(1, 9), st.integers(1, 90))
def test_parts_are_bounded_by_number_and_size(
    records: list[OutputRecord], max_records: int, max_bytes: int
) -> None:
    parts = list(RecordColumns.of(records).cut(max_records, max_bytes))
    assert [record for part in parts for record in part.records()] == records
    sizes = [[len(it.value or b"") for it in part.records()] for part in parts]
    assert all(len(it) <= max_records and sum(it[:-1]) < max_bytes for it in sizes)
    # No part could also hold the first record of the next.
    assert all(len(it) == max_records or sum(it) >= max_bytes for it, _ in pairwise(sizes))


def test_a_part_has_only_its_own_pieces() -> None:
    records = [OutputRecord(b"key", b"%d" % i * 100, str(i)) for i in range(100)]
    parts = list(RecordColumns.of(records).cut(10, 10**6))
    assert [len(part.pieces) for part in parts] == [30] * 10


@pytest.mark.parametrize(
    ("size", "count", "parts"), [(3_000_000, 5, 3), (10, 20_001, 3), (1, 0, 0)]
)
def test_single_records_are_collected_into_bounded_columns(
    size: int, count: int, parts: int
) -> None:
    value = bytes(size)
    records = [OutputRecord(b"k", value, str(number)) for number in range(count)]
    found = list(collect_records(records))
    assert len(found) == parts
    assert [record for part in found for record in part.records()] == records
