"""Time window and threshold of a timing condition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from correlation.errors import InvalidFieldError
from correlation.limits import DURATION_LIMIT_US, THRESHOLD_PLACES

# An infinite end inside the kernels: above every difference of two times (2**61) plus the
# largest finite end, and small enough that the sums of the kernels stay within int64.
UNBOUNDED_US = 2**62


class WindowScalars(NamedTuple):
    """A window as passed to the kernels: numbers only, infinite ends at ±`UNBOUNDED_US`.

    Attributes
    ----------
    lower, upper, floor, ceiling : int
        Microseconds.
    slack_part, whole : int
        1 - ct = slack_part / whole, whole > 0: the max probability outside the window.
    slack, threshold : float
        1 - ct and ct, correctly rounded.
    """

    lower: int
    upper: int
    floor: int
    ceiling: int
    slack_part: int
    whole: int
    slack: float
    threshold: float


@dataclass(frozen=True, slots=True)
class TimingWindow:
    """Range of T_B - T_A, and the min probability of that range.

    A pair (A, B) with s = max_B - max_A is *satisfied* if and only if
    P(lower ≤ T_B - T_A ≤ upper) ≥ threshold and floor ≤ s ≤ ceiling; all bounds are closed.

    Parameters
    ----------
    lower_us, upper_us : int or None
        The window, microseconds; None is infinite. At most one end may be None.
    floor_us, ceiling_us : int or None
        Limits of s (horizons), microseconds; None is unlimited. A window without a lower end needs
        a floor, and a window without an upper end a ceiling: otherwise events are kept forever.
    threshold : Fraction
        The confidence threshold ct: 0 < ct ≤ 1, at most 10 decimals.

    Raises
    ------
    InvalidFieldError
        A field is out of range, or the fields contradict each other.
    """

    lower_us: int | None
    upper_us: int | None
    floor_us: int | None
    ceiling_us: int | None
    threshold: Fraction

    def __post_init__(self) -> None:
        for field in ("lower_us", "upper_us", "floor_us", "ceiling_us"):
            _check_end(field, getattr(self, field))
        _check_order("upper_us", self.lower_us, self.upper_us)
        _check_order("ceiling_us", self.floor_us, self.ceiling_us)
        if self.lower_us is None and self.upper_us is None:
            raise InvalidFieldError("lower_us", "both ends are missing", "set at least one end")
        if self.lower_us is None and self.floor_us is None:
            raise InvalidFieldError(
                "floor_us", "both lower_us and floor_us are missing", "set a horizon"
            )
        if self.upper_us is None and self.ceiling_us is None:
            raise InvalidFieldError(
                "ceiling_us", "both upper_us and ceiling_us are missing", "set a horizon"
            )
        if not 0 < self.threshold <= 1:
            raise InvalidFieldError(
                "threshold",
                f"must be greater than 0 and at most 1; got {self.threshold}",
                "use for example 0.7",
            )
        if 10**THRESHOLD_PLACES % self.threshold.denominator:
            raise InvalidFieldError(
                "threshold",
                f"must be a decimal with at most {THRESHOLD_PLACES} places; got {self.threshold}",
                "round it",
            )

    def mirrored(self) -> TimingWindow:
        """Return the same condition with the roles of A and B swapped."""
        return TimingWindow(
            lower_us=_negative(self.upper_us),
            upper_us=_negative(self.lower_us),
            floor_us=_negative(self.ceiling_us),
            ceiling_us=_negative(self.floor_us),
            threshold=self.threshold,
        )

    def is_wide(self, max_uncertainty_a_us: int, max_uncertainty_b_us: int) -> bool:
        """Return whether at most one end cuts the support of any pair up to these lengths.

        Parameters
        ----------
        max_uncertainty_a_us, max_uncertainty_b_us : int
            Max uncertainty of either stream, microseconds.
        """
        if self.lower_us is None or self.upper_us is None:
            return True
        return self.upper_us - self.lower_us >= max_uncertainty_a_us + max_uncertainty_b_us

    def scalars(self) -> WindowScalars:
        """Return the window as numbers for the kernels."""
        slack = 1 - self.threshold
        whole = self.threshold.denominator
        return WindowScalars(
            lower=-UNBOUNDED_US if self.lower_us is None else self.lower_us,
            upper=UNBOUNDED_US if self.upper_us is None else self.upper_us,
            floor=-UNBOUNDED_US if self.floor_us is None else self.floor_us,
            ceiling=UNBOUNDED_US if self.ceiling_us is None else self.ceiling_us,
            slack_part=whole - self.threshold.numerator,
            whole=whole,
            slack=float(slack),
            threshold=float(self.threshold),
        )


def _check_end(field: str, end_us: int | None) -> None:
    if end_us is not None and abs(end_us) > DURATION_LIMIT_US:
        raise InvalidFieldError(
            field, f"{end_us} us is out of range", f"use at most ±{DURATION_LIMIT_US} us"
        )


def _check_order(field: str, low_us: int | None, high_us: int | None) -> None:
    if low_us is not None and high_us is not None and low_us > high_us:
        raise InvalidFieldError(
            field, f"{high_us} us is below {low_us} us", "swap them or widen the window"
        )


def _negative(end_us: int | None) -> int | None:
    return None if end_us is None else -end_us
