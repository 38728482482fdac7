"""Filters of the roles of a condition, such as `{"a": {…}, "b": {…}}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.resources.attributes import Attribute
from correlation.resources.filters import Filter, read_filter

_SHOWN = 40


def read_role_filters(document: object, roles: Sequence[str], field: str) -> dict[str, Filter]:
    """Read the filters of some roles; attributes and types are not checked.

    Parameters
    ----------
    document : object
        JSON value: an object with a filter for one role or more, or None.
    roles : sequence of str
        Names of the roles.
    field : str
        Name of the field, for errors.

    Raises
    ------
    InvalidFieldError
        A part is not valid; names every such field.
    """
    if document is None:
        return {}
    listed = " or ".join(roles)
    if not isinstance(document, Mapping):
        remedy = f'write {{"{roles[0]}": {{"attribute": value}}}}, or leave it out'
        raise InvalidFieldError(field, "must be an object", remedy)
    if not document:
        raise InvalidFieldError(field, "must not be empty", f"name {listed}, or leave it out")
    errors = FieldErrors()
    found = {}
    for role, it in document.items():
        if role in roles:
            with errors:
                found[role] = read_filter(it, None, f"{field}.{role}")
        else:
            unknown = f"{field}.{str(role)[:_SHOWN]}"
            errors.refuse(unknown, "is unknown", f"name {listed}", when=True)
    errors.raise_all()
    return found


def bind_role_filters(
    filters: Mapping[str, tuple[Filter | None, Sequence[Attribute]]], field: str
) -> dict[str, Filter]:
    """Return the filters for the attributes that the streams of the roles declare.

    Parameters
    ----------
    filters : mapping of role to (Filter or None, sequence of Attribute)
        Filter of each role, and the attributes of its stream.
    field : str
        Name of the field, for errors.

    Raises
    ------
    InvalidFieldError
        A filter does not fit the attributes; names every such field.
    """
    errors = FieldErrors()
    found = {}
    for role, (wanted, attributes) in filters.items():
        with errors:
            if wanted is not None:
                found[role] = wanted.bind(attributes, f"{field}.{role}")
    errors.raise_all()
    return found
