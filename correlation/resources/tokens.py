"""Tokens of the events of a stream: their declaration, and the tokens of lists and texts.

The tokens of an event are a set of strings: the members of a list, or the parts of a string that a
tokenizer finds. They are normalised, so that equal tokens are written alike (`normal_form`).
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from typing import Any

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.resources.attributes import RECORD_PATHS
from correlation.resources.normal_form import (
    MARKS_LIMIT,
    TooManyMarksError,
    normalise_token,
    write_ranges,
)
from correlation.resources.paths import (
    Path,
    is_path_document,
    path_from_document,
    path_to_document,
    type_name,
)
from correlation.resources.separators import check_expression, split_text

# Name of the column of the tokens in `Events.columns`.
TOKENS_COLUMN = "tokens"
# Maximum number of tokens of an event.
TOKENS_LIMIT = 10_000
# Maximum length of a token in UTF-8, in bytes.
TOKEN_BYTES = 1_024
# Maximum number of characters of a string that is divided: about 10,000 words.
TEXT_CHARACTERS = 65_536
# Maximum number of characters of an n-gram.
NGRAM_CHARACTERS = 32
STOP_WORDS_LIMIT = 1_000
TOKENIZERS = ("list", "words", "split:REGEX", "ngrams:N")
_FIELDS = ("path", "tokenizer", "lower_case", "stop_words")
# Optional fields: name, type, name of the type, and remedy.
_OPTIONS: tuple[tuple[str, type, str, str], ...] = (
    ("tokenizer", str, "a string", f"use one of {', '.join(TOKENIZERS)}"),
    ("lower_case", bool, "true or false", "write true or false, without quotes"),
    ("stop_words", list, "a list", 'write a list of strings: ["and", "the"]'),
)
_SHOWN = 40
_SHOWN_TOKENS = 20
# Maximum number of unknown fields that are listed.
_LISTED = 5
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
# They join the letters of words of some scripts.
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Declaration of the tokens of a stream.

    Parameters
    ----------
    path : path
        Field of the record: a list, or a string.
    tokenizer : str
        "list", "words", "split:REGEX" or "ngrams:N".
    lower_case : bool
        Whether upper and lower case are equal: tokens are case-folded.
    stop_words : tuple of str
        Tokens that are left out. The constructor normalises them as tokens, and sorts them.

    Raises
    ------
    InvalidFieldError
        A value is not valid.
    """

    path: Path
    tokenizer: str = "list"
    lower_case: bool = False
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        errors = FieldErrors()
        shown = ".".join(self.path)[:80]
        errors.refuse(
            "tokens.path",
            "has an empty part",
            'write a path such as "a.b", or a list of names',
            when=not (self.path and all(self.path)),
        )
        errors.refuse(
            "tokens.path",
            f"{shown} is a field of the Kafka record, not of its value",
            "use the path of a list or of a string",
            when=len(self.path) == 1 and self.path[0] in RECORD_PATHS,
        )
        with errors:
            _check_tokenizer(self.tokenizer)
        with errors:
            normalised = sorted({_read_stop_word(self, it) for it in self.stop_words})
            object.__setattr__(self, "stop_words", tuple(normalised))
        errors.refuse(
            "tokens.stop_words",
            f"got {len(self.stop_words)} words",
            f"use at most {STOP_WORDS_LIMIT}",
            when=len(self.stop_words) > STOP_WORDS_LIMIT,
        )
        errors.raise_all()

    @property
    def reads_list(self) -> bool:
        """Whether the field is a list of tokens, not a string."""
        return self.tokenizer == "list"


def fingerprint(tokens: Tokens) -> str:
    """Return a short string that identifies a declaration; equal declarations have equal ones."""
    document = json.dumps(tokens_to_document(tokens), sort_keys=True)
    return blake2b(document.encode(), digest_size=16).hexdigest()


def text_splitter(tokenizer: str) -> Callable[[str], list[str]]:
    """Return the function that finds the tokens of a normalised string.

    Parameters
    ----------
    tokenizer : str
        "words", "split:REGEX" or "ngrams:N".

    Returns
    -------
    callable
        `(text) -> tokens`, in the order of the string, repeated ones included. Raises
        `TooManySeparatorsError`.
    """
    name, _, argument = tokenizer.partition(":")
    if name == "split":
        return partial(split_text, argument)
    if name == "ngrams":
        return partial(_find_ngrams, int(argument))
    return _find_words


def _find_words(text: str) -> list[str]:
    r"""Return the words: letters, marks, digits, `_` and joiners.

    A repetition of one class cannot backtrack. Python's \w has no marks, so words of Indic scripts,
    and letters without a composed form, would be divided.
    """
    return (_ASCII_WORD if text.isascii() else _unicode_word()).findall(text)


@cache
def _unicode_word() -> re.Pattern[str]:
    codes = (it for it in range(sys.maxunicode + 1) if unicodedata.category(chr(it))[0] == "M")
    return re.compile(rf"[\w{_JOINERS}{write_ranges(codes)}]+")


def _find_ngrams(size: int, text: str) -> list[str]:
    """Return all sequences of `size` characters; a shorter string is returned whole."""
    if len(text) <= size:
        return [text] if text else []
    return [text[begin : begin + size] for begin in range(len(text) - size + 1)]


def _check_tokenizer(tokenizer: str) -> None:
    name, colon, argument = tokenizer.partition(":")
    if name == "split" and colon:
        check_expression(argument)
        return
    if name == "ngrams" and colon:
        # The first character cannot be 0, so that equal tokenizers are written alike.
        size = int(argument) if re.fullmatch(r"[1-9][0-9]?", argument, re.ASCII) else 0
        if not 1 <= size <= NGRAM_CHARACTERS:
            raise InvalidFieldError(
                "tokens.tokenizer",
                f"ngrams: the size must be 1 to {NGRAM_CHARACTERS}; got {argument[:_SHOWN]!r}",
                "write a number of characters, for example ngrams:3",
            )
        return
    if tokenizer not in TOKENIZERS or colon:
        raise InvalidFieldError(
            "tokens.tokenizer",
            f"{tokenizer[:_SHOWN]!r} is unknown",
            f"use one of {', '.join(TOKENIZERS)}",
        )


def _read_stop_word(tokens: Tokens, word: str) -> str:
    try:
        found = normalise_token(word, lower_case=tokens.lower_case)
        size = len(found.encode())
    except TooManyMarksError:
        raise InvalidFieldError(
            "tokens.stop_words",
            f"{word[:_SHOWN]!r} has more than {MARKS_LIMIT} combining marks in a row",
            "remove it",
        ) from None
    except UnicodeEncodeError:
        raise InvalidFieldError(
            "tokens.stop_words", f"{word[:_SHOWN]!r} is not valid Unicode", "remove it"
        ) from None
    if not 0 < size <= TOKEN_BYTES:
        raise InvalidFieldError(
            "tokens.stop_words",
            f"{found[:_SHOWN]!r} has {size} bytes",
            f"use words of 1 to {TOKEN_BYTES} bytes",
        )
    return found


def describe_tokens(tokens: Sequence[str]) -> str:
    """Return the tokens of an event as text, the first ones if there are many.

    Examples
    --------
    >>> describe_tokens(["disk", "full"])
    '2 tokens: disk, full'
    """
    more = len(tokens) - _SHOWN_TOKENS
    shown = ", ".join(tokens[:_SHOWN_TOKENS]) + (f" and {more:,} more" if more > 0 else "")
    return f"{len(tokens):,} token{'s' * (len(tokens) != 1)}" + (f": {shown}" if tokens else "")


def tokens_to_document(tokens: Tokens | None) -> dict[str, Any] | None:
    """Write the declaration of tokens as a part of a stream's normalised document."""
    if tokens is None:
        return None
    return {
        "path": path_to_document(tokens.path),
        "tokenizer": tokens.tokenizer,
        "lower_case": tokens.lower_case,
        "stop_words": list(tokens.stop_words),
    }


def tokens_from_document(document: object) -> Tokens | None:
    """Read the declaration of tokens: a path, an object, or None.

    Parameters
    ----------
    document : object
        A path ("a.b", or a list of names) or `{"path", "tokenizer", "lower_case", "stop_words"}`.

    Raises
    ------
    InvalidFieldError
        The document is not valid; has one problem per wrong field.
    """
    if document is None:
        return None
    fields = document if isinstance(document, Mapping) else {"path": document}
    errors = FieldErrors()
    for unknown in [it for it in fields if it not in _FIELDS][:_LISTED]:
        errors.refuse(f"tokens.{unknown}", "is unknown", f"use {', '.join(_FIELDS)}", when=True)
    path: Any = fields.get("path")
    valid = is_path_document(path)
    errors.refuse(
        "tokens.path" if isinstance(document, Mapping) else "tokens",
        "is missing" if "path" not in fields else "is not a valid path",
        'write a name, a dotted path ("a.b"), or a list of names',
        when=not valid,
    )
    declared: dict[str, Any] = {}
    for name, kind, wanted, remedy in _OPTIONS:
        if name not in fields:
            continue
        if isinstance(fields[name], kind):
            declared[name] = fields[name]
        else:
            problem = f"must be {wanted}; got {type_name(fields[name])}"
            errors.refuse(f"tokens.{name}", problem, remedy, when=True)
    with errors:
        declared["stop_words"] = _read_stop_words(declared.pop("stop_words", []))
    with errors:
        tokens = Tokens((path_from_document(path) if valid else None) or ("unnamed",), **declared)
    errors.raise_all()
    return tokens


def _read_stop_words(words: Iterable[object]) -> tuple[str, ...]:
    found = []
    for word in words:
        if not isinstance(word, str):
            raise InvalidFieldError(
                "tokens.stop_words", f"contains {type_name(word)}", "write strings only"
            )
        found.append(word)
    return tuple(found)
