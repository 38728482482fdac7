"""Numbers of records: times and masses are the exact decimals of the JSON, not float64."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.event_reader import MappedEvent, compile_mapping
from correlation.parsing.written_numbers import find_as_written
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.times import TimeFormat
from tests.oracle.numbers import span_us

UNITS_US: dict[TimeFormat, Fraction] = {
    "epoch_s": Fraction(1_000_000),
    "epoch_ms": Fraction(1_000),
    "epoch_us": Fraction(1),
    "epoch_ns": Fraction(1, 1_000),
}
DIGITS = st.text("0123456789", min_size=1, max_size=25)
EXPONENTS = st.one_of(
    st.just(""),
    st.builds(
        "{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 25)
    ),
)
# A sign, 1 to 25 digits with or without a dot among them, perhaps an exponent.
NUMBERS = st.builds(
    lambda sign, digits, dot, exponent: (
        sign
        + (digits[:dot].lstrip("0") or "0")
        + (f".{digits[dot:]}" if digits[dot:] else "")
        + exponent
    ),
    st.sampled_from(["", "-"]),
    DIGITS,
    st.integers(1, 25),
    EXPONENTS,
)
# Of this century, to a random fraction of a second: what most records have.
STAMPS = st.builds("{}.{}".format, st.integers(1_600_000_000, 1_999_999_999), DIGITS)


def read(mapping: EventMapping, text: str) -> MappedEvent:
    histograms = mapping.form in {"canonical", "histogram"}
    stream = Stream("s", "s", 2**45, 0, mapping=mapping, clock="replay", histograms=histograms)
    return compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", 0)


def span_or_reason(written: TimeFormat, number: str, rest: str = "") -> tuple[int, int] | Reason:
    mapping = EventMapping("time", time_path=("t",), format=written)
    try:
        event = read(mapping, f'{{"t": {number}{rest}}}')
    except RejectedEventError as error:
        return error.reason
    return event.earliest, event.latest


def judged(written: TimeFormat, number: str) -> tuple[int, int] | Reason:
    low, high = span_us(number, UNITS_US[written])
    in_range = -TIME_LIMIT_US <= low and high <= TIME_LIMIT_US
    return (low, high) if in_range else Reason.TIME_OUT_OF_RANGE


@given(st.sampled_from(sorted(UNITS_US)), NUMBERS | STAMPS)
@example("epoch_s", "1767225600.1234561")
@example("epoch_s", "17179869184.123457")
@example("epoch_s", "1767225600.123456")
@example("epoch_s", "1767225600.1234560000000001")
@example("epoch_s", "8589934592.000001")
@example("epoch_s", "1767225600123456e-6")
@example("epoch_us", "1767225600123456.0")
@example("epoch_us", "9007199254740993.0")
@example("epoch_us", "1e-400")
@example("epoch_us", "-1e-400")
@example("epoch_us", "0.0")
@example("epoch_us", "-0.0")
@example("epoch_us", "10000000000000001e2")
@example("epoch_us", "9999999999999999e2")
@example("epoch_ns", "1152921504606846976000")
@example("epoch_ns", "1152921504606846976001")
@example("epoch_ns", "99999999999999999999")
def test_a_time_is_the_number_that_is_written(written: TimeFormat, number: str) -> None:
    assert span_or_reason(written, number) == judged(written, number)


def test_a_time_is_exact_beside_the_same_float_written_otherwise() -> None:
    long, short = "1767225600.12345600000000001", "1767225600.123456"
    assert span_or_reason("epoch_s", short, f', "other": {long}') == judged("epoch_s", short)
    assert span_or_reason("epoch_s", long, f', "other": {short}') == judged("epoch_s", long)


@pytest.mark.parametrize("rest", [', "id": 12345678901234567890123', ', "key": 1e3'])
def test_id_and_key_are_read_as_beside_any_other_time(rest: str) -> None:
    mapping = EventMapping("time", ("id",), ("key",), time_path=("t",), format="epoch_s")
    for number in ("1", "1.5", "1.500000000000000000000000000001"):
        with pytest.raises(RejectedEventError) as rejected:
            read(mapping, f'{{"t": {number}{rest}, "k": "k"}}')
        assert rejected.value.reason is Reason.WRONG_TYPE


def test_a_long_number_in_a_record_of_many_levels_is_refused() -> None:
    deep = "[" * 1020 + "]" * 1020
    assert span_or_reason("epoch_s", "1.5", f', "deep": {deep}') == (1_500_000, 1_500_000)
    found = span_or_reason("epoch_s", "1.5000000000000000000000001", f', "deep": {deep}')
    assert found is Reason.NOT_A_TIME


@pytest.mark.parametrize("written", sorted(UNITS_US))
def test_an_exponent_beyond_decimals_is_refused(written: TimeFormat) -> None:
    assert span_or_reason(written, "1e-99999999999999999999") is Reason.NOT_A_TIME
    # The smallest exponent that a decimal can have.
    for number, span in (("1", (0, 1)), ("-1", (-1, 0)), ("0", (0, 0))):
        assert span_or_reason(written, f"{number}e-999999999999999999") == span


@pytest.mark.parametrize(
    ("before", "length"),
    [("3", 3), ("3.0", 3), ("3e2", 300), ("3.5", None), ("3.0000000000000000001", None)],
)
def test_before_is_the_number_that_is_written(before: str, length: int | None) -> None:
    text = f'{{"time": 10, "before": {before}}}'
    if length is None:
        with pytest.raises(RejectedEventError, match="whole number of microseconds") as rejected:
            read(EventMapping(), text)
        assert rejected.value.reason is Reason.WRONG_TYPE
    else:
        assert read(EventMapping(), text).earliest == 10 - length


@pytest.mark.parametrize(
    "mass", ["0.15000000000000000001", "0.1499999999999999999", "0.00000000001", "1.5e-400"]
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_mass_of_too_many_places_is_refused_as_number_and_as_string(
    mass: str, quote: str
) -> None:
    text = f'{{"histogram": [[0, 10, {quote}{mass}{quote}], [10, 20, 0.85]]}}'
    with pytest.raises(RejectedEventError, match=r"histogram\[0\]\.p.* decimal places") as found:
        read(EventMapping(), text)
    assert found.value.reason is Reason.BAD_HISTOGRAM


@pytest.mark.parametrize("mass", ["0.15", "0.1500", "15e-2", "0.150000000000000000000", "1.5E-1"])
def test_a_mass_counts_as_it_is_written(mass: str) -> None:
    number = read(EventMapping(), f'{{"histogram": [[0, 10, {mass}], [10, 20, 0.85]]}}')
    string = read(EventMapping(), '{"histogram": [[0, 10, "0.15"], [10, 20, "0.85"]]}')
    assert number == string


def test_bounds_of_a_histogram_are_the_numbers_that_are_written() -> None:
    mapping = EventMapping("histogram", histogram_path=("h",), format="epoch_s")
    text = '{"h": [{"lo": 0.0000019999999999999999999, "hi": 2, "p": 0.5}, [2, 3.0000001, 0.5]]}'
    found = read(mapping, text)
    assert (found.earliest, found.latest) == (1, 3_000_001)


@given(NUMBERS.filter(lambda it: len(it) < 30))
@example("0.0009999999999999999")
@example("1000.0000000000001")
@example("0.9999999999999999")
@example("9007199254740993.0")
@example("100000000000000.05")
@example("12345678901234567e-20")
def test_p_shortest_decimal_is_what_was_written(number: str) -> None:
    parsed = orjson.loads(number)
    for text in (number, f"{number} "):
        found = find_as_written(parsed, (), text.encode())
        assert isinstance(found, int | Decimal)
        assert Fraction(found) == Fraction(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_p_shortest_decimal_of_every_float(number: float) -> None:
    text = json.dumps(number)
    assert find_as_written(number, (), text.encode()) == Decimal(text)


@given(st.integers(-60, 60), st.integers(-3, 3))
def test_p_shortest_decimal_beside_powers_of_ten(exponent: int, steps: int) -> None:
    # Decimals of 16 digits are ten times as dense below a power of ten as above it.
    for digits in (15, 16):
        number = f"{10**digits + steps}e{exponent - digits}"
        found = find_as_written(orjson.loads(number), (), number.encode())
        assert isinstance(found, Decimal)
        assert Fraction(found) == Fraction(number)
