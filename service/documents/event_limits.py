"""Limits of the times of a stream's events: uncertainties of instants, or lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from correlation.condition_kind import Field
from service.documents.fields import spellings
from service.errors import FieldProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

UNCERTAINTY_FIELDS = (
    Field(
        "min_uncertainty",
        "duration",
        "Min length of an event's interval; default: 0.",
        required=False,
    ),
    Field(
        "max_uncertainty",
        "duration",
        "Max length of an event's interval; required, unless the events last.",
        required=False,
    ),
)
LENGTH_FIELDS = (
    Field(
        "min_length",
        "duration",
        "Min time from begin to end of an event that lasts; default: 0.",
        required=False,
    ),
    Field(
        "max_length",
        "duration",
        "Max time from begin to end of an event that lasts; default: unlimited.",
        required=False,
    ),
)


def lasts(given: Mapping[str, Any]) -> bool:
    """Return whether the mapping of a document has `begin` or `end`."""
    mapping = given.get("mapping")
    return isinstance(mapping, Mapping) and any(
        mapping.get(name) is not None for name in ("begin", "end")
    )


def limit_problems(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the problems of the limits in a stream's document.

    Parameters
    ----------
    given : mapping
        The document as the user sent it.
    """
    lasting = lasts(given)
    problem, remedy = "the events last: begin and end are exact times", "remove it, or declare {}"
    if not lasting:
        problem = "the mapping has no begin and end"
        remedy = "use {}, or set mapping.begin and mapping.end"
    for uncertainty, length in zip(UNCERTAINTY_FIELDS, LENGTH_FIELDS, strict=True):
        wrong, instead = (uncertainty, length) if lasting else (length, uncertainty)
        for name in spellings(wrong.name):
            if name in given:
                yield FieldProblem(name, problem, remedy.format(instead.name))
    names = spellings("max_uncertainty")
    if not (lasting or given.keys() & set(names)):
        choices = ", ".join(names[:-1]) + f' or {names[-1]} ("250ms")'
        yield FieldProblem("max_uncertainty", "is missing", f"use one of {choices}")
