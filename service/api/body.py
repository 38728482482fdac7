"""Parser of request bodies: JSON of bounded size and depth, with exact numbers.

Python's json module would round 0.70000000000000000001 to 0.7, accept NaN, keep the later of two
equal names and return unpaired surrogates, which cannot be stored. Such bodies are rejected with an
error that names the field.
"""

import json
from collections.abc import Callable, Coroutine, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from anyio import CapacityLimiter, fail_after, to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.api.callers import require_role
from service.api.query import refuse_query
from service.errors import (
    BodyError,
    BodyTimeoutError,
    BodyTooLargeError,
    FieldProblem,
    MediaTypeError,
)

# Max nesting of a body. The JSON form of an event query is the deepest document: 32 levels of its
# formula are up to 64 levels of lists and objects.
_DEPTH = 80
# Max number of values in one body. The longest useful document, a template of 100 buckets written
# as objects, has about 400; checking many more values would keep the service busy.
MAX_VALUES = 10_000
# Max number of values in a sample of records, which are not checked one by one.
_SAMPLE_VALUES = 100_000
# Max number of bodies parsed concurrently; parsing holds the GIL, so more are not faster.
PARSED_AT_ONCE = 2
# Numbers that fit any field are shorter; a longer number is read as infinity, hence rejected.
_NUMBER_CHARACTERS = 40
_EXPONENT = 30
_INFINITE = float("inf")
# Messages of the json module, by prefix.
_SYNTAX = (
    (
        "Expecting property name",
        "a name in double quotes is missing",
        "put every name in double quotes",
    ),
    (
        "Expecting value",
        "a value is missing",
        "write a string, number, true, false, null, list or object",
    ),
    ("Expecting ','", "a comma is missing", "write a comma between values"),
    ("Expecting ':'", "a colon is missing", "write a colon between a name and its value"),
    ("Extra data", "text follows the document", "remove it"),
    ("Invalid control character", "a control character in a string", r"write \n for a line break"),
    ("Invalid \\", "a backslash that is not valid", "write two backslashes"),
    ("Unterminated string", "a string is not closed", "close it with a double quote"),
    ("Unexpected UTF-8 BOM", "a byte order mark", "save it as UTF-8 without one"),
)
# Common mistakes that are not valid JSON.
_SLIPS = (
    ("'", "a single quote", 'write double quotes: "…"'),
    ("//", "a comment", "remove it: JSON has no comments"),
    ("/*", "a comment", "remove it: JSON has no comments"),
    ("#", "a comment", "remove it: JSON has no comments"),
    ("True", "True", "write true"),
    ("False", "False", "write false"),
    ("None", "None", "write null"),
)


class Allowance(NamedTuple):
    """Limit of the number of values in a field: the number, and how to stay below it."""

    values: int
    remedy: str


_DOCUMENT = Allowance(MAX_VALUES, "send fewer values, in several documents")
_NO_FIELDS: Mapping[str, Allowance] = MappingProxyType({})


def parse_json(body: bytes, own: Mapping[str, Allowance] = _NO_FIELDS) -> object:
    """Parse a body.

    Parameters
    ----------
    body : bytes
        JSON in UTF-8.
    own : mapping of str to Allowance
        Fields with limits of their own, instead of that of the document.

    Returns
    -------
    object
        Integers as int, other numbers as Decimal; numbers outside every field's range as infinity.

    Raises
    ------
    BodyError
        When it is not JSON, is nested too deep, has too many values, or repeats a name.
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
        raise BodyError(f"the body is not valid UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        problem = _not_json(error)
        raise BodyError(f"the body is not valid JSON: {problem.problem}", (problem,)) from None
    except RecursionError:
        raise BodyError(f"the body is nested deeper than {_DEPTH} levels") from None
    place, rest = _Place(), document
    if isinstance(document, dict):
        rest = {name: value for name, value in document.items() if name not in own}
        for name in own.keys() & document.keys():
            _check_values(_Place(place, name), document[name], own[name])
    _check_values(place, rest, _DOCUMENT)
    return document


def new_limiter() -> CapacityLimiter:
    """Build the limiter of the threads that parse bodies, for one application."""
    return CapacityLimiter(PARSED_AT_ONCE)


class JsonRoute(APIRoute):
    """A route that checks the role of the caller, and parses query and body strictly.

    Unknown query parameters are rejected; `parse_json` parses the body.
    """

    # Fields of the body with limits of their own (`parse_json`).
    own: ClassVar[Mapping[str, Allowance]] = _NO_FIELDS

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401  those of APIRoute
        super().__init__(path, refuse_query(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which runs after the role is checked and the body is parsed."""
        handle = super().get_route_handler()
        has_body = self.body_field is not None

        async def handle_parsed(request: Request) -> Response:
            require_role(request)
            return await handle(await _parsed(request, self.own) if has_body else request)

        return handle_parsed


class SampleRoute(JsonRoute):
    """A route whose body may contain a sample of records."""

    own = MappingProxyType(
        {"sample": Allowance(_SAMPLE_VALUES, "send fewer records, or use sample_from_topic")}
    )


class _ParsedRequest(Request):
    """A request whose body is already parsed."""

    parsed: object = None

    async def body(self) -> bytes:
        """Return a non-empty placeholder; `json` returns the parsed body."""
        return b"{}"

    async def json(self) -> object:
        """Return the parsed body."""
        return self.parsed


async def _parsed(request: Request, own: Mapping[str, Allowance]) -> _ParsedRequest:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise MediaTypeError(
            "the body must be JSON; send the header Content-Type: application/json"
        )
    state = request.app.state
    limit = state.plane.settings.max_body_bytes
    body = bytearray()
    seconds = state.plane.settings.request_timeout_seconds
    try:
        with fail_after(seconds):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise BodyTooLargeError(f"the body must have at most {limit} bytes")
    except TimeoutError:
        raise BodyTimeoutError(f"the body must arrive within {seconds:g} s") from None
    found = _ParsedRequest(request.scope, request.receive)
    # Parsed in a thread, so that other requests are answered meanwhile.
    found.parsed = await to_thread.run_sync(parse_json, bytes(body), own, limiter=state.parsing)
    found.state.document = found.parsed
    return found


def _read_whole(text: str) -> object:
    return int(text) if len(text) <= _NUMBER_CHARACTERS else _INFINITE


def _read_fraction(text: str) -> object:
    if len(text) > _NUMBER_CHARACTERS:
        return _INFINITE
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent outside the range of Decimal
        return _INFINITE
    return number if abs(number.adjusted()) <= _EXPONENT else _INFINITE


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            problem = FieldProblem(name, "is repeated", "write it once")
            raise BodyError(f"{name!r} is repeated in one object", (problem,))
        found[name] = value
    return found


def _not_json(error: json.JSONDecodeError) -> FieldProblem:
    """Return the problem of a syntax error: its place and the likely remedy."""
    before, here = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    at = _place(error.doc, error.pos)
    if before.endswith(",") and here[:1] in {"}", "]"}:
        comma = _place(error.doc, len(before) - 1)
        return FieldProblem("", f"an extra comma at {comma}", f"remove the comma at {comma}")
    if not here and not before:
        return FieldProblem("", "the text is empty", "send a JSON object: {…}")
    found = (it for it in _SYNTAX if error.msg.startswith(it[0]))
    _, what, remedy = next(found, ("", "a syntax error", "correct the syntax"))
    problem = f"{what} at {at}"
    if not here.strip():
        problem, remedy = "ends too early", "close all strings, objects and lists"
    for beginning, what, instead in _SLIPS:
        if here.startswith(beginning):
            problem, remedy = f"{what} at {at}", instead
    return FieldProblem("", problem, remedy)


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - text.rfind(chr(10), 0, at)}"


class _Place(NamedTuple):
    """The path of a value; formatted only for an error, because it may be long."""

    above: "_Place | None" = None
    part: str | int = ""

    def __str__(self) -> str:
        parts: list[str] = []
        place: _Place | None = self
        while place is not None:
            parts.append(f"[{place.part}]" if isinstance(place.part, int) else place.part)
            place = place.above
        # The document itself has no name.
        return ".".join(parts[-2::-1]).replace(".[", "[")


def _check_values(at: _Place, document: object, allowed: Allowance) -> None:
    """Check the number of values, the nesting, and that all strings can be stored."""
    waiting: list[tuple[_Place, object, int]] = [(at, document, int(at.above is not None))]
    count = 1
    while waiting:
        place, value, depth = waiting.pop()
        if depth > _DEPTH:
            raise BodyError(f"the body is nested deeper than {_DEPTH} levels")
        if isinstance(value, str):
            _check_text(place, value)
        elif isinstance(value, dict | list):
            count += len(value)
            if count > allowed.values:
                raise _too_many(place, allowed)
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            for part, found in inner:
                here = _Place(place, part)
                if isinstance(part, str):
                    _check_text(here, part)
                waiting.append((here, found, depth + 1))


def _too_many(place: _Place, allowed: Allowance) -> BodyError:
    problem = f"the body has more than {allowed.values:,} values"
    found = FieldProblem(str(place), problem, allowed.remedy)
    return BodyError(problem, (found,))


def _check_text(place: _Place, text: str) -> None:
    if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
        problem = FieldProblem(
            str(place), "contains half of a surrogate pair", "write valid Unicode"
        )
        raise BodyError("a string contains half of a surrogate pair", (problem,))
