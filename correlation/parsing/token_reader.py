"""Reader of the tokens of a record.

A missing field, and null, is an empty set. A value of another type, a set with too many tokens, a
token that is too long, and a string with too many combining marks in a row reject the record.

Cost. O(length of the list or the string); see `separators` for split:REGEX.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from correlation.errors import RejectedEventError
from correlation.parsing.records import Objects, column_at
from correlation.reasons import Reason
from correlation.resources.normal_form import MARKS_LIMIT, TooManyMarksError, normalise_token
from correlation.resources.paths import type_name
from correlation.resources.separators import SEPARATORS_LIMIT, TooManySeparatorsError
from correlation.resources.tokens import (
    TEXT_CHARACTERS,
    TOKEN_BYTES,
    TOKENS_LIMIT,
    Tokens,
    text_splitter,
)

# Distinct tokens in UTF-8, in order of their first use.
EventTokens = tuple[bytes, ...]
# Reader of the tokens of a parsed record, which is a JSON object.
TokensReader = Callable[[object], EventTokens]
# Distinct tokens, in order of their first use.
TokenSet = Collection[str]
# Reader of the tokens of parsed records, and which records are regular.
TokenColumnsReader = Callable[[Objects, NDArray[np.bool_]], Sequence[TokenSet]]
# Finder of the distinct tokens of a field; None: the field is missing or null.
DistinctReader = Callable[[object], TokenSet]
# Finder of the normalised tokens of a field, with repeated and empty ones and stop words.
TokenFinder = Callable[[object], Iterable[str]]
_SHOWN = 40


def tokens_reader(tokens: Tokens) -> TokensReader:
    """Return the reader of the tokens of a record.

    Parameters
    ----------
    tokens : Tokens
        Declaration of the stream.

    Returns
    -------
    callable
        `(value) -> tokens`, empty if the field is missing or null; raises RejectedEventError if the
        field is not a valid list or string.
    """
    first, *rest = tokens.path
    field, find_distinct = _field_of(tokens), _distinct_reader(tokens)

    def read(value: object) -> EventTokens:
        found = value.get(first) if isinstance(value, dict) else None
        for part in rest:
            found = found.get(part) if isinstance(found, dict) else None
        return _encode(field, find_distinct(found))

    return read


def token_columns_reader(tokens: Tokens) -> TokenColumnsReader:
    """Return the reader of the tokens of many records.

    Parameters
    ----------
    tokens : Tokens
        Declaration of the stream.

    Returns
    -------
    callable
        `(objects, is_regular) -> sets of strings`, which `tokens_reader` returns in UTF-8 for the
        regular records. Other records become irregular; the sets of irregular ones are undefined.
    """
    field, find_distinct = _field_of(tokens), _distinct_reader(tokens)

    def read(objects: Objects, is_regular: NDArray[np.bool_]) -> Sequence[TokenSet]:
        found = column_at(objects, tokens.path)
        sets: list[TokenSet] = [()] * len(found)
        for place in np.flatnonzero(is_regular).tolist():
            try:
                sets[place] = find_distinct(found[place])
            except RejectedEventError:
                is_regular[place] = False
        if not _all_fit(sets):
            for place in np.flatnonzero(is_regular).tolist():
                try:
                    _encode(field, sets[place])
                except RejectedEventError:
                    is_regular[place] = False
        return sets

    return read


def _field_of(tokens: Tokens) -> str:
    return f"field {'.'.join(tokens.path)!r}"


def _distinct_reader(tokens: Tokens) -> DistinctReader:
    """Return the finder of the distinct tokens of a field, which may still be too many or long."""
    field = _field_of(tokens)
    find_tokens = _list_reader(field, tokens) if tokens.reads_list else _text_reader(field, tokens)
    stop_words = frozenset(("", *tokens.stop_words))

    def read(found: object) -> TokenSet:
        if found is None:
            return ()
        # A dict keeps the order, so that the result does not depend on the hash function.
        distinct = dict.fromkeys(find_tokens(found))
        for word in stop_words & distinct.keys():
            del distinct[word]
        return distinct

    return read


def _list_reader(field: str, tokens: Tokens) -> TokenFinder:
    lower_case = tokens.lower_case

    def read(found: object) -> Iterable[str]:
        if not isinstance(found, list):
            raise _bad_tokens(f"{field} must be a list of tokens; got {type_name(found)}")
        try:
            is_ascii = "".join(found).isascii()
        except TypeError:
            found = [_as_string(field, place, it) for place, it in enumerate(found)]
            is_ascii = False
        # ASCII is normalised already.
        if lower_case or not is_ascii:
            try:
                found = [normalise_token(it, lower_case=lower_case) for it in found]
            except TooManyMarksError:
                raise _too_many_marks(field) from None
        return found

    return read


def _as_string(field: str, place: int, member: object) -> str:
    """Return a member of a list: a string, or the digits of an integer."""
    if isinstance(member, bool) or not isinstance(member, str | int):
        raise _bad_tokens(
            f"{field} must be a list of strings or integers; item {place} is {type_name(member)}"
        )
    return str(member)


def _text_reader(field: str, tokens: Tokens) -> TokenFinder:
    split = text_splitter(tokens.tokenizer)
    lower_case = tokens.lower_case

    def read(found: object) -> Iterable[str]:
        if not isinstance(found, str):
            raise _bad_tokens(f"{field} must be a string; got {type_name(found)}")
        if len(found) > TEXT_CHARACTERS:
            raise _bad_tokens(
                f"{field} must have at most {TEXT_CHARACTERS:,} characters; got {len(found):,}"
            )
        try:
            if not found.isascii():
                found.encode()
            return split(normalise_token(found, lower_case=lower_case))
        except TooManySeparatorsError:
            raise _bad_tokens(
                f"{field} must have at most {SEPARATORS_LIMIT:,} separators; got more"
            ) from None
        except TooManyMarksError:
            raise _too_many_marks(field) from None
        except UnicodeEncodeError:
            raise _bad_tokens(f"{field} is not valid Unicode") from None

    return read


def _encode(field: str, distinct: Collection[str]) -> EventTokens:
    """Return the tokens in UTF-8, within their limits."""
    if len(distinct) > TOKENS_LIMIT:
        raise _bad_tokens(
            f"{field} must have at most {TOKENS_LIMIT:,} tokens; got {len(distinct):,}"
        )
    try:
        encoded = tuple(map(str.encode, distinct))
    except UnicodeEncodeError:
        raise _bad_tokens(f"{field} is not valid Unicode") from None
    longest = max(encoded, key=len, default=b"")
    if len(longest) > TOKEN_BYTES:
        shown = longest[:_SHOWN].decode(errors="ignore")
        raise _bad_tokens(
            f"{field} must have tokens of at most {TOKEN_BYTES:,} bytes; "
            f"{shown}… has {len(longest):,}"
        )
    return encoded


def _all_fit(sets: Sequence[TokenSet]) -> bool:
    """Return whether no set has too many tokens, and no token is too long or not valid."""
    if max(map(len, sets), default=0) > TOKENS_LIMIT:
        return False
    try:
        encoded = map(str.encode, set(chain.from_iterable(sets)))
        return max(map(len, encoded), default=0) <= TOKEN_BYTES
    except UnicodeEncodeError:
        return False


def _too_many_marks(field: str) -> RejectedEventError:
    return _bad_tokens(
        f"{field} must have at most {MARKS_LIMIT} combining marks in a row; got more"
    )


def _bad_tokens(detail: str) -> RejectedEventError:
    return RejectedEventError(Reason.BAD_TOKENS, detail)
