"""Normalisation of strings to Unicode's form NFC, with a limit that keeps its work linear.

Problem. Normalisation sorts each run of combining marks. Python's sort is quadratic in the length
of the run: a string of 131 kB can take seconds, and one of 1 MB minutes.

Definition. A mark is a character whose decomposed form (NFD) begins with a combining class other
than 0. The sort moves these characters only, and all others separate their runs.

Algorithm. A string with more than `MARKS_LIMIT` marks in a row in its form NFD is refused, so that
equivalent strings are treated alike. More of them in a row as written are refused without
normalisation. If few are in a row, NFD has no more than the limit; other strings are decomposed to
count their marks (docs/proofs.md, P-MARKS).

References. Unicode Standard Annex 15, section 13 (Stream-Safe Text Format: 30 marks); Unicode
Standard, section 3.13, definition D145 (canonical caseless matching).
Cost. O(length of the string).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import groupby

# Maximum number of marks in a row: the limit of Unicode's Stream-Safe Text Format. Words of natural
# languages have at most about five.
MARKS_LIMIT = 30
# Fewer marks in a row, after a character that ends in three, are at most MARKS_LIMIT marks in NFD.
_FEW_MARKS = (MARKS_LIMIT - 3) // 2
_FIRST_PLANE = 0x10000
# Characters of class 0 that are decomposed into marks.
_COMPOSED_MARKS = "\u0f73\u0f75\u0f81"


class TooManyMarksError(ValueError):
    """A string has more than `MARKS_LIMIT` combining marks in a row."""


def normalise_token(text: str, *, lower_case: bool) -> str:
    """Return a string in Unicode's form NFC, and with `lower_case` case-folded.

    Canonically equivalent strings have equal results, and all of them are refused or none.

    Raises
    ------
    TooManyMarksError
        The string has more than `MARKS_LIMIT` combining marks in a row.

    Examples
    --------
    >>> normalise_token("Straße", lower_case=True)
    'strasse'
    """
    if text.isascii():
        return text.lower() if lower_case else text
    if len(text) > _FEW_MARKS and _possible_run().search(text):
        _check_marks(text)
    if lower_case:
        # Case folding does not preserve the form, so it is applied to the decomposed text.
        text = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFC", text)


def _check_marks(text: str) -> None:
    too_many = _run_of_marks()
    if too_many.search(text) or too_many.search(unicodedata.normalize("NFD", text)):
        raise TooManyMarksError


@cache
def _possible_run() -> re.Pattern[str]:
    """Return the expression of strings that may have too many marks in a row."""
    # Python searches a class quickly if its characters beyond the first plane are one range.
    first_plane = write_ranges(it for it in _marks() if it < _FIRST_PLANE)
    letter = f"[{first_plane}{chr(_FIRST_PLANE)}-{chr(sys.maxunicode)}]"
    # A search for one character is faster than one for a run.
    return re.compile(f"{letter}{letter}{{{_FEW_MARKS}}}")


@cache
def _run_of_marks() -> re.Pattern[str]:
    return re.compile(f"[{write_ranges(_marks())}]{{{MARKS_LIMIT + 1}}}")


@cache
def _marks() -> list[int]:
    letters = map(chr, range(sys.maxunicode + 1))
    return [ord(it) for it in letters if unicodedata.combining(it) or it in _COMPOSED_MARKS]


def write_ranges(codes: Iterable[int]) -> str:
    """Return increasing code points as the ranges of a class of a regular expression."""
    ranges = []
    # Consecutive codes have the same distance from their places. Ranges are searched faster.
    for _, group in groupby(enumerate(codes), lambda it: it[1] - it[0]):
        run = [chr(code) for _, code in group]
        ranges.append(f"{run[0]}-{run[-1]}")
    return "".join(ranges)
