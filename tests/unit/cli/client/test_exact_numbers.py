"""Numbers in files and on the command line are used exactly as written, or refused."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.client.exact_json import write_json
from cli.client.explain import read_request
from cli.client.resources import read_resources
from cli.errors import UsageError
from cli.replay.setup import read_topic_setup
from cli.replay.thresholds import read_thresholds
from correlation.errors import InvalidFieldError
from correlation.resources.durations import parse_duration_us
from correlation.resources.histogram import read_mass
from correlation.resources.thresholds import read_threshold
from service.api.body import parse_json
from tests.support.messages import naming
from tests.unit.cli.replay.test_files import RANGE, read

if TYPE_CHECKING:
    from pathlib import Path

PAIR = """\
{kind: stream, name: a, topic: ta, max_uncertainty: 1s, max_delay: 1s, templates: [t]}
---
{kind: template, name: t, buckets: [[0, 10, %(mass)s], [10, 20, 0.85]]}
---
{kind: mutual_deadline, name: c, a: a, b: a, window: 1s, threshold: %(threshold)s}
"""


def _scalar(tmp_path: Path, text: str, name: str = "file.yaml") -> object:
    """Read a plain scalar out of a resource file."""
    file = tmp_path / name
    file.write_text(f"kind: x\nname: a\nvalue: {text}\n")
    return read_resources([file])[0].document["value"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.7", Decimal("0.7")),
        ("0.70000000000000000001", Decimal("0.70000000000000000001")),
        ("1767225600.1234561", Decimal("1767225600.1234561")),
        ("1e3", Decimal("1e3")),
        ("1.5E-3", Decimal("0.0015")),
        (".5", Decimal("0.5")),
        ("-12", -12),
        ("+12", 12),
        ("9" * 50, Decimal("9" * 50)),
        ('"0.7"', "0.7"),
        ('"on"', "on"),
        ("True", True),
        ("false", False),
        ("~", None),
        ("250ms", "250ms"),
        ("2 s", "2 s"),
        ("1.2.3", "1.2.3"),
        ("e3", "e3"),
    ],
)
def test_a_scalar_of_a_file_is_what_is_written(tmp_path: Path, text: str, expected: object) -> None:
    found = _scalar(tmp_path, text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1_000", ["1_000", "underscore", "write 1000"]),
        ("0.7_5", ["0.7_5", "underscore", "write 0.75"]),
        ("1:30", ["1:30", "base-60"]),
        ("1:30.5", ["1:30.5", "base-60"]),
        (".inf", [".inf", "JSON number"]),
        ("-.INF", ["-.INF", "JSON number"]),
        (".NaN", [".NaN", "JSON number"]),
        ("010", ["010", "octal", "leading 0"]),
        ("0o10", ["0o10", "octal"]),
        ("08", ["08", "octal"]),
        ("00.5", ["00.5", "octal"]),
        ("0x1F", ["0x1F", "hexadecimal"]),
        ("0b11", ["0b11", "binary"]),
        ("0x1_F", ["0x1_F", "hexadecimal"]),
        ("on", ["on", "boolean", "write true", '"on" in quotes']),
        ("No", ["No", "boolean", "write false", '"No" in quotes']),
        ("1e99999999999999999999", ["1e99999999999999999999", "out of range", "exponent"]),
        ("!!float x", ["x", "valid number"]),
        ("!!bool x", ["x", "boolean"]),
    ],
)
def test_a_scalar_with_two_meanings_is_refused_with_its_place(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    with pytest.raises(UsageError, match=naming("file.yaml, line 3, column 8", *names)):
        _scalar(tmp_path, text)


def test_a_json_file_has_the_numbers_of_json(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text('{"kind": "x", "name": "a", "value": [1e3, 0.70000000000000000001, -2]}')
    (found,) = read_resources([file])
    assert found.document["value"] == [1000, Decimal("0.70000000000000000001"), -2]


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("threshold", "0.70000000000000000001", "threshold: .*too many decimal places"),
        ("mass", "0.15000000000000000001", r"buckets\[0\].p: .*too many decimal places"),
    ],
)
def test_a_number_of_too_many_places_is_refused_in_a_file_as_over_rest(
    tmp_path: Path, quote: str, field: str, text: str, message: str
) -> None:
    file = tmp_path / "pair.yaml"
    good = {"mass": "0.15", "threshold": "0.7"}
    file.write_text(PAIR % good)
    setup = read_topic_setup([file], (), lambda _: 1)
    assert setup.conditions[0].document["threshold"] == "0.7"
    file.write_text(PAIR % (good | {field: f"{quote}{text}{quote}"}))
    with pytest.raises(UsageError, match=message):
        read_topic_setup([file], (), lambda _: 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [0.70000000000000000001, 1E+3, -5], "b": {"é\\"": null, "c": true}}',
        '{"n": 1767225600.1234561}',
    ],
)
def test_a_document_is_written_with_all_of_its_digits(text: str) -> None:
    document = json.loads(text, parse_float=Decimal)
    assert parse_json(write_json(document).encode()) == document


def test_explain_asks_with_the_numbers_that_were_given(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text('{"record": {"heard_at": 17179869184.123457}}')
    request = read_request(
        {"a": '{"time": 1767225600.1234561, "id": 7}', "b": str(file)}, None, None
    )
    sent = write_json(request)
    assert '"time": 1767225600.1234561, "id": 7' in sent
    assert '"heard_at": 17179869184.123457' in sent


@pytest.mark.parametrize(
    "text",
    [
        *("0.5..0.9:0.10000000000000000000000000000000000001", "0.5..0.9:1_0", "0_7", "0.7_5"),
        "1e-9999999",
    ],
)
def test_thresholds_that_would_be_rounded_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--thresholds"):
        read_thresholds(text)


@pytest.mark.parametrize("text", ["0_1", "0.1_5", "\u0660.\u0661", "1__0e-2", "nan", "Infinity"])
def test_a_text_is_a_decimal_as_people_write_it(text: str) -> None:
    with pytest.raises(InvalidFieldError, match="must be a decimal"):
        read_threshold(text)
    with pytest.raises(InvalidFieldError, match="must be a decimal"):
        read_mass(text, "p")


def test_a_duration_is_not_rounded() -> None:
    with pytest.raises(InvalidFieldError, match="whole number of microseconds"):
        parse_duration_us("999999999999999999.999999999999us")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_times_of_text_files_are_the_numbers_that_are_written(tmp_path: Path, form: Any) -> None:  # noqa: ANN401 - a Format
    path = tmp_path / f"events.{form}"
    low, high = "17179869184.123457", "17179869184.1234571"
    if form == "csv":
        path.write_text(f"phone,site,felt.from,felt.to\n7,n,{low},{high}\n")
    else:
        path.write_text(f'{{"phone": 7, "site": "n", "felt": {{"from": {low}, "to": {high}}}}}\n')
    rows, letters = read(path, RANGE, form)
    assert letters == []
    assert rows == [("7", "n", 17_179_869_184_123_457, 17_179_869_184_123_458)]


def test_a_double_of_a_parquet_file_is_its_shortest_decimal(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.parquet"
    # The first double is 1767225600.12345600128…
    felt = [(1767225600.123456, 1767225600.123456), (1767225601.5, 1767225601.5)]
    table = {
        "phone": ["a", "b"],
        "site": ["n", "n"],
        "felt.from": [low for low, _ in felt],
        "felt.to": [high for _, high in felt],
    }
    pq.write_table(pa.table(table), path)
    rows, _ = read(path, RANGE, "parquet")
    assert rows == [
        ("a", "n", 1_767_225_600_123_456, 1_767_225_600_123_456),
        ("b", "n", 1_767_225_601_500_000, 1_767_225_601_500_000),
    ]


def test_a_decimal_of_a_parquet_file_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    table = {
        "phone": ["a"],
        "site": ["n"],
        "felt.from": pa.array([Decimal("17179869184.1234570")], pa.decimal128(20, 7)),
        "felt.to": pa.array([Decimal("17179869184.1234571")], pa.decimal128(20, 7)),
    }
    pq.write_table(pa.table(table), path)
    rows, _ = read(path, RANGE, "parquet")
    assert rows == [("a", "n", 17_179_869_184_123_457, 17_179_869_184_123_458)]
