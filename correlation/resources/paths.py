"""Access to the fields of a record by path."""

from __future__ import annotations

from correlation.errors import RejectedEventError
from correlation.reasons import Reason

Path = tuple[str, ...]
_MISSING = object()


def find(value: object, path: Path) -> object:
    """Return the field of a record at a path.

    Raises
    ------
    RejectedEventError
        The field is missing.
    """
    found = value
    for name in path:
        if not isinstance(found, dict):
            found = _MISSING
            break
        found = found.get(name, _MISSING)
    if found is _MISSING:
        raise RejectedEventError(Reason.MISSING_FIELD, f"field {'.'.join(path)!r} is missing")
    return found


def has_path(value: object, path: Path) -> bool:
    """Return whether a record has a field."""
    try:
        find(value, path)
    except RejectedEventError:
        return False
    return True


def type_name(value: object) -> str:
    """Return the name of a value's JSON type."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


def is_path_document(document: object) -> bool:
    """Return whether a value is a path: a string, or a list of strings, which are not empty."""
    parts = document if isinstance(document, list) else [document]
    return bool(parts) and all(isinstance(part, str) and part for part in parts)


def path_to_document(path: Path | None) -> str | list[str] | None:
    """Write a path as "a.b", or as a list of names if a name has a dot."""
    if path is None:
        return None
    return list(path) if any("." in part for part in path) else ".".join(path)


def path_from_document(path: str | list[str] | None) -> Path | None:
    """Read the output of `path_to_document`."""
    if path is None:
        return None
    return tuple(path.split(".")) if isinstance(path, str) else tuple(path)
