"""Fields of documents that hold the filters of a condition's roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.resources.role_filters import read_role_filters
from service.errors import DocumentErrors

if TYPE_CHECKING:
    from correlation.condition_kind import Field
    from service.errors import FieldProblem


def filter_problems(field: Field, value: object) -> tuple[FieldProblem, ...]:
    """Return the problems of the filters; attributes and types need the streams.

    Parameters
    ----------
    field : Field
        A field of type filters.
    value : object
        Its value as the user sent it, or None.
    """
    errors = DocumentErrors()
    with errors:
        read_role_filters(value, field.choices, field.name)
    return errors.problems


def normalise_filters(field: Field, value: object) -> dict[str, Any] | None:
    """Return valid filters in their stored form: finite numbers, a list of one as its constant."""
    found = read_role_filters(value, field.choices, field.name)
    return {role: it.to_document() for role, it in found.items()} or None
