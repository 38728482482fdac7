"""Reading a request's body: JSON of bounded size and depth, with every number exact.

Python's own parser would round 0.70000000000000000001 to 0.7, take NaN, let the later of two equal
names win and give halves of surrogate pairs that nothing can store. Here these are refused, with
the field named.
"""

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal, InvalidOperation
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.errors import BodyError, BodyTooLargeError, FieldProblem, MediaTypeError

_DEPTH = 16
# A number that fits any field is shorter; a longer one is treated as infinite, hence refused.
_NUMBER_CHARACTERS = 40
_EXPONENT = 30
_INFINITE = float("inf")
# The parser's messages, by their beginnings.
_SYNTAX = (
    ("Expecting property name", "no name in double quotes", "put every name in double quotes"),
    (
        "Expecting value",
        "no value",
        "write a text, number, true, false, null, list or object there",
    ),
    ("Expecting ','", "a comma is missing", "write a comma between values"),
    ("Expecting ':'", "a colon is missing", "write a colon between a name and its value"),
    ("Extra data", "something follows the document", "remove what follows"),
    ("Invalid control character", "a line break or the like in a text", r"write \n for it"),
    ("Invalid \\", "a backslash that begins nothing", "write two backslashes"),
    ("Unterminated string", "a text without its end", "close it with a double quote"),
    ("Unexpected UTF-8 BOM", "a byte order mark", "save it as UTF-8 without one"),
)
# What people write that JSON does not know.
_SLIPS = (
    ("'", "a single quote", 'write double quotes: "…"'),
    ("//", "a comment", "remove it: JSON has no comments"),
    ("/*", "a comment", "remove it: JSON has no comments"),
    ("#", "a comment", "remove it: JSON has no comments"),
    ("True", "True", "write true"),
    ("False", "False", "write false"),
    ("None", "None", "write null"),
)


def parse_json(body: bytes) -> object:
    """Parse a body.

    Parameters
    ----------
    body : bytes
        JSON in UTF-8.

    Returns
    -------
    object
        Whole numbers as int, others as Decimal; numbers that no field takes as infinity.

    Raises
    ------
    BodyError
        When it is not JSON, nested too deep, or gives a name twice.
    """
    try:
        document = json.loads(
            body.decode("utf-8"),
            parse_float=_read_fraction,
            parse_int=_read_whole,
            parse_constant=lambda _: _INFINITE,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not UTF-8 from byte {error.start} on") from None
    except json.JSONDecodeError as error:
        problem = _not_json(error)
        raise BodyError(f"the body is not JSON: {problem.problem}", (problem,)) from None
    except RecursionError:
        raise BodyError(f"the body is nested deeper than {_DEPTH}") from None
    _check_texts(document)
    return document


class JsonRoute(APIRoute):
    """A route whose body is read by `parse_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give the handler, with the body read before it."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def handle_parsed(request: Request) -> Response:
            return await handle(await _parsed(request))

        return handle_parsed


class _ParsedRequest(Request):
    """A request whose body was read already."""

    parsed: object = None

    async def body(self) -> bytes:
        """Give bytes that are not empty: the parsed body is what counts."""
        return b"{}"

    async def json(self) -> object:
        """Give the parsed body."""
        return self.parsed


async def _parsed(request: Request) -> _ParsedRequest:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise MediaTypeError("send JSON and the header Content-Type: application/json")
    limit = request.app.state.plane.settings.max_body_bytes
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise BodyTooLargeError(f"a body has at most {limit} bytes")
    found = _ParsedRequest(request.scope, request.receive)
    found.parsed = parse_json(bytes(body))
    found.state.document = found.parsed
    return found


def _read_whole(text: str) -> object:
    return int(text) if len(text) <= _NUMBER_CHARACTERS else _INFINITE


def _read_fraction(text: str) -> object:
    if len(text) > _NUMBER_CHARACTERS:
        return _INFINITE
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent beyond all that Decimal can hold
        return _INFINITE
    return number if abs(number.adjusted()) <= _EXPONENT else _INFINITE


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        problem = FieldProblem(twice, "is given twice", "give it once")
        raise BodyError(f"{twice!r} is given twice in one object", (problem,))
    return found


def _not_json(error: json.JSONDecodeError) -> FieldProblem:
    """Say where it stops being JSON, and what most probably to do about it."""
    before, here = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    at = _place(error.doc, error.pos)
    if before.endswith(",") and here[:1] in {"}", "]"}:
        comma = _place(error.doc, len(before) - 1)
        return FieldProblem("", f"a comma too many at {comma}", f"remove the comma at {comma}")
    if not here and not before:
        return FieldProblem("", "it is empty", "send a JSON object: {…}")
    found = (it for it in _SYNTAX if error.msg.startswith(it[0]))
    _, what, remedy = next(found, ("", "something unexpected", f"correct it at {at}"))
    problem = f"{what} at {at}"
    if not here.strip():
        problem, remedy = "it ends too early", "close what is open: texts, objects, lists"
    for beginning, what, instead in _SLIPS:
        if here.startswith(beginning):
            problem, remedy = f"{what} at {at}", instead
    return FieldProblem("", problem, remedy)


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - text.rfind(chr(10), 0, at)}"


def _check_texts(document: object) -> None:
    """Refuse texts that cannot be stored, and deep nesting."""
    waiting: list[tuple[str, object, int]] = [("", document, 0)]
    while waiting:
        field, value, depth = waiting.pop()
        if depth > _DEPTH:
            raise BodyError(f"the body is nested deeper than {_DEPTH}")
        if isinstance(value, str):
            _check_text(field, value)
        elif isinstance(value, dict):
            for name, found in value.items():
                _check_text(field, name)
                waiting.append((f"{field}.{name}" if field else name, found, depth + 1))
        elif isinstance(value, list):
            waiting += [(f"{field}[{at}]", found, depth + 1) for at, found in enumerate(value)]


def _check_text(field: str, text: str) -> None:
    if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
        problem = FieldProblem(field, "holds half of a surrogate pair", "write valid Unicode")
        raise BodyError("a text holds half of a surrogate pair", (problem,))
