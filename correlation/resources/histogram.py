"""Histograms: distributions of uncertain times in buckets.

Problem. Store the distribution of an uncertain time exactly as a user wrote it.

Definitions. A *histogram* (PTJ Definition 1) is a list of contiguous buckets ((lo, hi), p): the
time lies in a bucket with probability p and is uniform inside it. Bounds are whole microseconds;
the masses p are decimals of at most 10 places, held as integers over 10**10, and sum to exactly 1.
An interval is a histogram of one bucket. An exact time is a histogram of one bucket of length zero.
A histogram of several buckets has no bucket of length zero, so a distribution is either continuous
or a point. A bucket of mass zero is a gap between other buckets. Buckets of mass zero at either end
are dropped, so that `earliest` and `latest` are the ends of the support.

Reference. Mok, Woo and Lee 2006, section 2; spec section 1.

Cost. O(n) for n buckets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from itertools import pairwise
from typing import Any, NamedTuple

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import BUCKET_LIMIT, LENGTH_LIMIT_US, MASS_PLACES, TIME_LIMIT_US
from correlation.resources.decimals import read_decimal, without_zeros

# Sum of the masses of a histogram.
WHOLE_MASS = 10**MASS_PLACES
_UNIT_MASS = Decimal(1).scaleb(-MASS_PLACES)
_EXACTLY = Context(traps=[Inexact, InvalidOperation])
_DECIMAL = f"use a decimal from 0 to 1 with at most {MASS_PLACES} places, for example 0.15"
_MICROSECONDS = "use whole microseconds"
EndReader = Callable[[Mapping[str, Any], str, str], int]


class Bucket(NamedTuple):
    """A part of a histogram on which the time is uniformly distributed.

    Attributes
    ----------
    lo_us, hi_us : int
        Bounds, in microseconds.
    mass : int
        Probability, in units of 10**-10.
    """

    lo_us: int
    hi_us: int
    mass: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution of a time, or of an offset from a time.

    Parameters
    ----------
    buckets : sequence of Bucket
        1 to 100 contiguous buckets in ascending order; buckets of mass zero at either end are
        dropped.

    Raises
    ------
    InvalidFieldError
        Buckets overlap, leave gaps, are empty or reversed, have negative masses or masses that do
        not sum to exactly 1, or exceed the limits of times and lengths.
    """

    buckets: tuple[Bucket, ...]

    def __post_init__(self) -> None:
        buckets = tuple(Bucket(*bucket) for bucket in self.buckets)
        check_count(len(buckets))
        errors = FieldErrors()
        errors.extend(_problems_of(buckets))
        errors.raise_all()
        filled = [place for place, bucket in enumerate(buckets) if bucket.mass]
        support = buckets[filled[0] : filled[-1] + 1]
        _check_length(support[-1].hi_us - support[0].lo_us)
        object.__setattr__(self, "buckets", support)

    @property
    def earliest_us(self) -> int:
        """Minimum possible time, in microseconds."""
        return self.buckets[0].lo_us

    @property
    def latest_us(self) -> int:
        """Maximum possible time, in microseconds."""
        return self.buckets[-1].hi_us

    @property
    def length_us(self) -> int:
        """Length of the support, in microseconds."""
        return self.latest_us - self.earliest_us

    @property
    def edges_us(self) -> tuple[int, ...]:
        """The n + 1 bounds of the n buckets, ascending, in microseconds."""
        return (self.earliest_us, *(bucket.hi_us for bucket in self.buckets))

    @property
    def masses(self) -> tuple[int, ...]:
        """The n masses, in units of 10**-10."""
        return tuple(bucket.mass for bucket in self.buckets)

    def moved(self, by_us: int) -> Histogram:
        """Return the histogram shifted by `by_us` microseconds (PTJ: H + x).

        Raises
        ------
        InvalidFieldError
            The result exceeds the range of times.
        """
        return Histogram(
            tuple(Bucket(lo_us + by_us, hi_us + by_us, mass) for lo_us, hi_us, mass in self.buckets)
        )

    def shape(self) -> Histogram:
        """Return the histogram as offsets from its latest time."""
        return self.moved(-self.latest_us)

    @property
    def shape_bytes(self) -> bytes | None:
        """Binary form of the shape, stored with events: 2 n + 1 int64; None for an interval.

        The n + 1 edges as offsets from the latest time, in µs, are followed by the n masses.
        """
        if len(self.buckets) == 1:
            return None
        numbers = [*(edge - self.latest_us for edge in self.edges_us), *self.masses]
        return struct.pack(f"<{len(numbers)}q", *numbers)

    @classmethod
    def from_shape_bytes(cls, shape: bytes) -> Histogram:
        """Read the output of `shape_bytes`: a shape that ends at 0."""
        numbers = struct.unpack(f"<{len(shape) // 8}q", shape)
        edges, masses = numbers[: len(numbers) // 2 + 1], numbers[len(numbers) // 2 + 1 :]
        return cls(
            tuple(
                Bucket(lo, hi, mass) for (lo, hi), mass in zip(pairwise(edges), masses, strict=True)
            )
        )

    @classmethod
    def from_interval(cls, earliest_us: int, latest_us: int) -> Histogram:
        """Build the uniform distribution on an interval, or an exact time if the ends are equal."""
        return cls((Bucket(earliest_us, latest_us, WHOLE_MASS),))

    @classmethod
    def from_buckets(cls, buckets: object, read_end: EndReader | None = None) -> Histogram:
        """Read a histogram from the user's list of buckets.

        Parameters
        ----------
        buckets : list
            Buckets `{"lo": µs, "hi": µs, "p": mass}` or `[lo, hi, p]`; the mass is a decimal in a
            string or a JSON number.
        read_end : callable, optional
            `(bucket, "lo" or "hi", field of the bucket) -> µs`, which reads a bound and raises
            InvalidFieldError. Default: bounds are whole µs.

        Raises
        ------
        InvalidFieldError
            A field is missing or not valid; an InvalidFieldsError of several.
        """
        if not isinstance(buckets, Sequence) or isinstance(buckets, str | bytes):
            raise InvalidFieldError("buckets", "must be a list", "write [[lo, hi, p], …]")
        check_count(len(buckets))
        errors = FieldErrors()
        found: list[Bucket | None] = []
        for place, bucket in enumerate(buckets):
            found.append(None)
            with errors:
                found[-1] = _read_bucket(bucket, f"buckets[{place}]", read_end or _read_end)
        errors.extend(_problems_of(found))
        errors.raise_all()
        return cls(tuple(bucket for bucket in found if bucket is not None))

    def to_buckets(self) -> list[dict[str, Any]]:
        """Write the buckets in the form that `from_buckets` reads, with masses as strings."""
        return [
            {"lo": bucket.lo_us, "hi": bucket.hi_us, "p": _format_mass(bucket.mass)}
            for bucket in self.buckets
        ]


def check_count(count: int) -> None:
    """Raise InvalidFieldError if a histogram has too few or too many buckets."""
    if not 1 <= count <= BUCKET_LIMIT:
        raise InvalidFieldError(
            "buckets", f"got {count} buckets", f"use 1 to {BUCKET_LIMIT}; merge neighbours"
        )


def _problems_of(buckets: Sequence[Bucket | None]) -> Iterator[InvalidFieldError]:
    """Yield the problems of buckets; None: a bucket that cannot be read."""
    before = None
    for place, bucket in enumerate(buckets):
        if bucket is not None:
            yield from _bucket_problems(bucket, f"buckets[{place}]", alone=len(buckets) == 1)
            if before is not None:
                yield from _contact_problems(before, bucket, f"buckets[{place}].lo")
        before = bucket
    masses = [bucket.mass for bucket in buckets if bucket is not None]
    if len(masses) == len(buckets) and sum(masses) != WHOLE_MASS:
        yield InvalidFieldError(
            "buckets",
            f'the sum of the "p" must be exactly 1; got {_format_mass(sum(masses))}',
            'correct a "p"',
        )


def _bucket_problems(bucket: Bucket, field: str, *, alone: bool) -> Iterator[InvalidFieldError]:
    out_of_range = False
    for end, end_us in (("lo", bucket.lo_us), ("hi", bucket.hi_us)):
        if abs(end_us) > TIME_LIMIT_US:
            out_of_range = True
            yield InvalidFieldError(
                f"{field}.{end}", f"{end_us} us is out of range", f"use at most ±{TIME_LIMIT_US} us"
            )
    if bucket.lo_us > bucket.hi_us and not out_of_range:
        yield InvalidFieldError(
            f"{field}.hi", f"{bucket.hi_us} us is below lo, {bucket.lo_us} us", "swap lo and hi"
        )
    if bucket.lo_us == bucket.hi_us and not alone:
        yield InvalidFieldError(
            f"{field}.hi",
            "the bucket is empty",
            "make it at least 1 us long; only a single bucket may be an exact time",
        )
    if bucket.mass < 0:
        yield InvalidFieldError(
            f"{field}.p", f"must not be negative; got {_format_mass(bucket.mass)}", _DECIMAL
        )


def _contact_problems(before: Bucket, bucket: Bucket, field: str) -> Iterator[InvalidFieldError]:
    if bucket.lo_us < before.hi_us:
        yield InvalidFieldError(
            field,
            f"lo, {bucket.lo_us} us, is below {before.hi_us} us, the end of the previous bucket",
            "sort the buckets; each must begin at the end of the previous bucket",
        )
    if bucket.lo_us > before.hi_us:
        yield InvalidFieldError(
            field,
            f"lo, {bucket.lo_us} us, is above {before.hi_us} us, the end of the previous bucket",
            'fill the gap with a bucket whose "p" is 0, or change lo',
        )


def _check_length(length_us: int) -> None:
    if length_us > LENGTH_LIMIT_US:
        raise InvalidFieldError(
            "buckets",
            f"span {length_us} us",
            f"use a span of at most {LENGTH_LIMIT_US} us",
        )


def bucket_parts(bucket: object, field: str) -> tuple[Any, Any, Any]:
    """Return lo, hi and p of a user's bucket: an object, or a list of the three values.

    Raises
    ------
    InvalidFieldError
        The bucket has another type, or a part is missing.
    """
    if isinstance(bucket, Mapping):
        lo, hi, mass = (_part(bucket, part, field) for part in ("lo", "hi", "p"))
        return lo, hi, mass
    if not isinstance(bucket, list | tuple) or len(bucket) != len(Bucket._fields):
        raise InvalidFieldError(
            field, "is not a valid bucket", 'write [lo, hi, p] or {"lo", "hi", "p"}'
        )
    lo, hi, mass = bucket
    return lo, hi, mass


def _read_bucket(bucket: object, field: str, read_end: EndReader) -> Bucket:
    if not isinstance(bucket, Mapping):
        bucket = dict(zip(("lo", "hi", "p"), bucket_parts(bucket, field), strict=True))
    errors = FieldErrors()
    lo_us = hi_us = mass = 0
    with errors:
        lo_us = read_end(bucket, "lo", field)
    with errors:
        hi_us = read_end(bucket, "hi", field)
    with errors:
        mass = read_mass(_part(bucket, "p", field), f"{field}.p")
    errors.raise_all()
    return Bucket(lo_us, hi_us, mass)


def _part(bucket: Mapping[str, Any], part: str, field: str) -> object:
    if part not in bucket:
        raise InvalidFieldError(f"{field}.{part}", "is missing", "add it")
    return bucket[part]


def _read_end(bucket: Mapping[str, Any], end: str, field: str) -> int:
    value = _part(bucket, end, field)
    if type(value) is not int:
        raise InvalidFieldError(f"{field}.{end}", "must be a whole number", _MICROSECONDS)
    return value


def read_mass(value: object, field: str) -> int:
    """Read a mass exactly; a float counts as the shortest decimal that rounds to it.

    Returns
    -------
    int
        Mass in units of 10**-10.

    Raises
    ------
    InvalidFieldError
        The value is not a decimal from 0 to 1, or has too many places.
    """
    mass = read_decimal(value)
    if mass is None:
        raise InvalidFieldError(field, "must be a decimal", _DECIMAL)
    if not 0 <= mass <= 1:
        raise InvalidFieldError(field, f"is {str(value)[:40]}", _DECIMAL)
    try:
        return int(mass.quantize(_UNIT_MASS, context=_EXACTLY).scaleb(MASS_PLACES))
    except Inexact:
        raise InvalidFieldError(
            field, f"{str(value)[:40]} has too many decimal places", _DECIMAL
        ) from None


def _format_mass(mass: int) -> str:
    return f"{without_zeros(Decimal(mass).scaleb(-MASS_PLACES)):f}"
