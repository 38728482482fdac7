"""Shifts of times in words, and lists in sentences."""

from __future__ import annotations

from correlation.resources.durations import UNITS_US

_UNITS = ("d", "h", "min", "s", "ms")
_MS = UNITS_US["ms"]


def format_shift(shift_us: int) -> str:
    """Return a shift such as " + 5 min" or " - 5 min - 1 us"; "" for 0."""
    rest = 0
    if shift_us % _MS in {1, _MS - 1}:
        rest = 1 if shift_us % _MS == 1 else -1
    return _signed(shift_us - rest) + _signed(rest)


def _signed(shift_us: int) -> str:
    if shift_us == 0:
        return ""
    unit = next((it for it in _UNITS if shift_us % UNITS_US[it] == 0), "us")
    return f" {'+' if shift_us > 0 else '-'} {abs(shift_us) // UNITS_US[unit]} {unit}"


def split_strict(bound_us: int) -> tuple[int, bool]:
    """Return a bound and whether it is strict: ``< 5 min`` is ``<= 5 min - 1 us``."""
    strict = bound_us % _MS == _MS - 1
    return bound_us + strict, strict


def join_words(names: list[str]) -> str:
    """Return names in a sentence: "a", "a and b", or "a, b and c"; "" without names."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def round_shift(shift_us: int) -> str:
    """Return a shift in words, rounded up to 1 ms, such as " + 1 min 32.5 s"; "" for 0.

    The bounds of strict relations differ from those of the text by 1 µs, which is noise to readers.
    """
    rest_ms = -(-shift_us // _MS)
    sign = "-" if rest_ms < 0 else "+"
    rest_ms = abs(rest_ms)
    parts = []
    for unit in ("d", "h", "min"):
        count, rest_ms = divmod(rest_ms, UNITS_US[unit] // _MS)
        parts += [f"{count} {unit}"] if count else []
    seconds, rest_ms = divmod(rest_ms, 1000)
    if seconds or rest_ms:
        fraction = f".{rest_ms:03}".rstrip("0") if rest_ms else ""
        parts.append(f"{rest_ms} ms" if not seconds and not parts else f"{seconds}{fraction} s")
    return f" {sign} {' '.join(parts)}" if parts else ""
