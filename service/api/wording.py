"""Problems of a document in plain words: pydantic's errors, and similar names as remedies.

Pydantic's own messages are not shown: they use its internal terms and name no remedy.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher, get_close_matches
from typing import Any

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from service.documents.models import known_fields
from service.errors import FieldProblem, first_problems

_SEE = "see /openapi.json for valid values"
_KINDS = f"use one of: {', '.join(KINDS)}"
_OBJECT = ("must be an object", "write a JSON object: {…}")
_WHOLE = ("must be a whole number", "write a whole number, without quotes")
_REMEDIES = {
    "missing": ("is missing", "add it"),
    "union_tag_not_found": ("is missing", _KINDS),
    "finite_number": ("must be a finite number", "use a smaller number"),
    "decimal_max_places": ("has too many decimal places", "use at most 10 places"),
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "dict_type": _OBJECT,
    "list_type": ("must be a list", "write a list: […]"),
    "string_type": ("must be a string", "write a string, in double quotes"),
    "bool_type": ("must be true or false", "write true or false, without quotes"),
    "int_parsing": _WHOLE,
    "int_parsing_size": ("is too large", "use a smaller number"),
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
}
_LIMITS = {
    "greater_than": ("gt", "must be greater than {}", "use a number greater than {}"),
    "greater_than_equal": ("ge", "must be at least {}", "use at least {}"),
    "less_than": ("lt", "must be less than {}", "use less than {}"),
    "less_than_equal": ("le", "must be at most {}", "use at most {}"),
    "too_long": ("max_length", "has more than {} items", "use at most {}"),
    "string_too_long": ("max_length", "is longer than {} characters", "use at most {} characters"),
    "string_too_short": ("min_length", "is too short", "use at least {} characters"),
}
_SHOWN = 40
# Max number of characters compared; every name and choice is shorter.
_COMPARED = 100


def field_problems(
    found: Iterable[Mapping[str, Any]], above: tuple[str, ...] = (), document: str = ""
) -> tuple[FieldProblem, ...]:
    """Convert pydantic's errors to field problems, up to `MAX_PROBLEMS` of them.

    Parameters
    ----------
    found : iterable of dict
        Errors as `ValidationError.errors()` returns them.
    above : tuple of str
        First parts of a location that are not fields.
    document : str
        "template" or "stream"; empty: a stream, or a condition whose locations name its kind.
    """
    return first_problems(
        problem for error in found for problem in _translated(error, above, document or "stream")
    )


def by_nearness(name: str, known: Iterable[str]) -> list[str]:
    """Sort known names by similarity to a written name, the most similar first."""
    return sorted(known, key=lambda it: (-_nearness(name, it), it))


def _translated(
    error: Mapping[str, Any], above: tuple[str, ...], kind: str
) -> Iterable[FieldProblem]:
    parts = [f"[{part}]" if isinstance(part, int) else str(part) for part in error["loc"]]
    if parts[:1] and parts[0] in above:
        del parts[0]
    # The location in a union begins with the kind. An unknown field may have the name of a kind.
    named = len(parts) > 1 or error["type"] != "extra_forbidden"
    if parts and parts[0] in KINDS and named:
        kind = parts.pop(0)
    context = error.get("ctx") or {}
    if error["type"] == "fields":
        for problem in context["all"]:
            yield replace(problem, field=_joined([*parts, problem.field]))
        return
    if error["type"].startswith("union_tag"):
        parts.append("kind")
    field = _joined(parts)
    if error["type"] == "extra_forbidden":
        yield FieldProblem(field, *_unknown_field(parts, known_fields(kind, tuple(parts[:-1]))))
    else:
        yield FieldProblem(field, *_in_words(error, context))


def _joined(parts: Iterable[str]) -> str:
    """Join the parts of a field's path that are not empty, with list indices: `a.b[0].c`."""
    return ".".join(filter(None, parts)).replace(".[", "[")


def _in_words(error: Mapping[str, Any], context: Mapping[str, Any]) -> tuple[str, str]:
    kind, value, cause = error["type"], error.get("input"), context.get("error")
    if isinstance(cause, InvalidFieldError):
        return cause.problem, cause.remedy
    if kind == "union_tag_invalid":
        return _unknown_choice(context.get("tag"), list(KINDS))
    if kind in {"literal_error", "enum"}:
        return _unknown_choice(value, re.findall(r"'([^']*)'", str(context.get("expected"))))
    if kind in _LIMITS:
        name, problem, remedy = _LIMITS[kind]
        limit = context.get(name)
        return problem.format(limit), remedy.format(limit)
    return _REMEDIES.get(kind, ("is not valid", _SEE))


def _unknown_field(parts: list[str], known: Iterable[str]) -> tuple[str, str]:
    written = parts[-1][:_COMPARED].lower().replace("-", "_")
    near = get_close_matches(written, list(known), n=1)
    remedy = f"did you mean {near[0]}?" if near else "remove it, or check its spelling"
    return "is not a field of this document", remedy


def _unknown_choice(value: object, choices: list[str]) -> tuple[str, str]:
    remedy = f"use one of: {', '.join(choices)}"
    if isinstance(value, str):
        near = get_close_matches(value[:_COMPARED].lower(), choices, n=1)
        remedy = f"did you mean {near[0]}? {remedy}" if near else remedy
    return f"{_shown(value)} is unknown", remedy


def _shown(value: object) -> str:
    """Return a value as JSON, truncated if it is long."""
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]


def _nearness(name: str, known: str) -> float:
    return SequenceMatcher(None, name[:_COMPARED].lower().replace("-", "_"), known).ratio()
