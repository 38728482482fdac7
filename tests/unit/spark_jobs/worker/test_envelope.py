"""Packed output records are unpacked unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.operators import Heading, OutputRecord
from correlation.record_columns import collect_records
from spark_jobs.worker.envelope import (
    Record,
    RecordPacker,
    pack_headers,
    pack_result,
    unpack_headers,
    unpack_meta,
    unpack_records,
)

HEADERS = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=20), st.none() | st.binary()),
    max_size=4,
)
RECORDS = st.lists(
    st.builds(
        Record,
        st.sampled_from(["a", "b", "c"]),
        st.none() | st.binary(max_size=30),
        st.none() | st.binary(max_size=300),
        HEADERS,
    ),
    max_size=30,
)


@given(RECORDS)
def test_records_come_back_in_their_order(records: list[Record]) -> None:
    packer = RecordPacker(meta={"fact": 7})
    packer.extend(records)
    blobs = packer.finish()
    found = [record for blob in blobs for record in unpack_records(blob)]
    assert [(*record[:3], list(record.headers)) for record in found] == [
        (*record[:3], list(record.headers)) for record in records
    ]
    assert unpack_meta(blobs[-1])["fact"] == 7


@given(HEADERS)
def test_headers_come_back_also_repeated_empty_and_null(
    headers: list[tuple[str, bytes | None]],
) -> None:
    assert unpack_headers(pack_headers(headers)) == headers


def test_large_records_close_a_blob() -> None:
    packer = RecordPacker()
    records = [Record("a", None, bytes([number]) * 3_000_000) for number in range(5)]
    packer.extend(records)
    blobs = packer.finish()
    assert len(blobs) == 3
    assert [record for blob in blobs for record in unpack_records(blob)] == records


@pytest.mark.parametrize(("size", "count", "blobs"), [(3_000_000, 5, 3), (10, 20_001, 3)])
def test_results_close_a_blob_by_size_and_by_number(size: int, count: int, blobs: int) -> None:
    results = [OutputRecord(b"k", bytes(size), str(number)) for number in range(count)]
    packed = list(pack_result("t", Heading("alarms", None, {}), collect_records(results)))
    assert len(packed) == blobs
    found = [record for blob in packed for record in unpack_records(blob)]
    assert [(it.key, it.value, dict(it.headers)["ce_id"]) for it in found] == [
        (it.key, it.value, it.ident.encode()) for it in results
    ]


@given(st.lists(st.none() | st.binary(max_size=9), max_size=9))
def test_results_may_be_tombstones(values: list[bytes | None]) -> None:
    results = [OutputRecord(b"k", value, str(number)) for number, value in enumerate(values)]
    packed = pack_result("t", Heading("list", None, {}), collect_records(results))
    assert [it.value for blob in packed for it in unpack_records(blob)] == values


def test_nothing_packed_gives_no_blob() -> None:
    assert RecordPacker().finish() == []
