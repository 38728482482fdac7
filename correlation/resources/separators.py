"""Regular expressions that separate the tokens of a string, matched in bounded time.

Problem. Users write the expression and producers write the string. An engine that backtracks needs
exponential time for some pairs of them, and a time limit would make the result of a record depend
on the machine: a batch that is processed again must have the same result.

Algorithm. RE2 simulates a finite automaton: a search of n bytes takes O(m n) for a program of m
instructions. But a search may read far past the separator that it finds, and the next search reads
the same bytes again. So each search reads at most a window of 2 L bytes. A separator that begins in
the first half of a window and has at most L bytes ends in the window, and the search from the
beginning of the window finds it as a search of the whole string would. The next window begins after
the last separator that begins in the first half, and not before the second half.

Reference. Cox 2010, Regular Expression Matching in the Wild (RE2).

Cost. O((s + n / L) L m) for s separators; O(n) in practice.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from correlation.errors import InvalidFieldError

# Maximum number of characters of an expression.
EXPRESSION_CHARACTERS = 1_000
# Maximum number of instructions of the program of an expression: [\s\pP]+ has 337, [^\pL]+ 1,203.
# A string of the maximum length then takes 2 seconds at most.
PROGRAM_SIZE = 400
# Maximum length of a separator that is found as a whole, in bytes.
SEPARATOR_BYTES = 128
# Maximum number of separators in a string.
SEPARATORS_LIMIT = 10_000
_FIELD = "tokens.tokenizer"
# An expression that matches only itself.
_LITERAL = re.compile(r"[^\\.+*?()|[\]{}^$]+")
# \C matches a single byte, which may be a part of a character.
_ESCAPES = re.compile(r"\\(.)", re.DOTALL)


class TooManySeparatorsError(ValueError):
    """A string has more than `SEPARATORS_LIMIT` separators."""


def check_expression(expression: str) -> None:
    """Raise InvalidFieldError if an expression cannot separate tokens in bounded time."""
    if not expression:
        raise InvalidFieldError(
            _FIELD, "split: has no expression", "write the separator, for example split:[,;]"
        )
    if len(expression) > EXPRESSION_CHARACTERS:
        raise InvalidFieldError(
            _FIELD,
            f"the expression has {len(expression)} characters",
            f"use at most {EXPRESSION_CHARACTERS}",
        )
    try:
        compiled = _compile(expression)
    except UnicodeEncodeError:
        raise InvalidFieldError(
            _FIELD, "the expression is not valid Unicode", "remove the unpaired surrogates"
        ) from None
    except re2.error as error:
        problem = str(error.args[0], errors="replace") if error.args else "unknown problem"
        raise InvalidFieldError(
            _FIELD,
            f"the expression is not valid: {problem}",
            "use the syntax of RE2, which has no lookaround and no backreferences",
        ) from None
    if "C" in _ESCAPES.findall(expression):
        raise InvalidFieldError(
            _FIELD, r"\C matches a part of a character", r"use . or [\s\S] instead"
        )
    if compiled.programsize > PROGRAM_SIZE:
        raise InvalidFieldError(
            _FIELD,
            f"the expression has {compiled.programsize} instructions",
            f"write an expression of at most {PROGRAM_SIZE}: shorten its repetitions, and use the "
            "tokenizer words instead of classes such as \\pL",
        )
    if compiled.search(b"") is not None:
        raise InvalidFieldError(
            _FIELD,
            "the expression matches the empty string",
            "write one that matches a character, for example + instead of *",
        )


def split_text(expression: str, text: str) -> list[str]:
    r"""Return the parts of a string between the matches of an expression, without empty parts.

    Empty matches do not separate. A separator of more than `SEPARATOR_BYTES` may be divided.

    Parameters
    ----------
    expression : str
        Expression that passes `check_expression`.
    text : str
        String to divide; valid Unicode.

    Raises
    ------
    TooManySeparatorsError
        The string has more than `SEPARATORS_LIMIT` matches.

    Examples
    --------
    >>> split_text(r",\s*", "red, green,blue,")
    ['red', 'green', 'blue']
    """
    if _LITERAL.fullmatch(expression):
        divided = text.split(expression)
        if len(divided) > SEPARATORS_LIMIT + 1:
            raise TooManySeparatorsError
        return [part for part in divided if part]
    # Bytes: with a string, RE2's Python module would count the characters before each match.
    data = text.encode()
    finditer = _compile(expression).finditer
    parts = []
    count = begin = position = 0
    while position < len(data):
        end = position + 2 * SEPARATOR_BYTES
        # Separators that begin before this place end in the window.
        certain = len(data) if end >= len(data) else end - SEPARATOR_BYTES
        for found in finditer(data, position, end):
            low, high = found.span()
            if low >= certain:
                break
            count += 1
            if count > SEPARATORS_LIMIT:
                raise TooManySeparatorsError
            if low < high:
                parts.append(data[begin:low])
                begin = high
        position = max(certain, begin)
    parts.append(data[begin:])
    return [part.decode() for part in parts if part]


@lru_cache(maxsize=128)
def _compile(expression: str) -> re2._Regexp:
    options = re2.Options()
    # Problems are raised; RE2 would also write them to standard error.
    options.log_errors = False
    options.never_capture = True
    return re2.compile(expression, options)
