"""Fields of a record by their paths."""

from __future__ import annotations

from correlation.errors import RejectedEventError
from correlation.reasons import Reason

Path = tuple[str, ...]
_MISSING = object()


def find(value: object, path: Path) -> object:
    """Give the field of a record.

    Raises
    ------
    RejectedEventError
        When there is none.
    """
    found = value
    for name in path:
        if not isinstance(found, dict):
            found = _MISSING
            break
        found = found.get(name, _MISSING)
    if found is _MISSING:
        raise RejectedEventError(Reason.MISSING_FIELD, f"no field {'.'.join(path)!r}")
    return found


def has_path(value: object, path: Path) -> bool:
    """Say whether a record has a field."""
    try:
        find(value, path)
    except RejectedEventError:
        return False
    return True


def type_name(value: object) -> str:
    """Say what of JSON a value is."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
