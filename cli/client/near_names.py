"""Suggestions of similar names for a name that does not exist."""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.errors import RefusedError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cli.client.rest import ServiceClient

_NOT_FOUND, _INVALID = 404, 422


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a sentence ending that suggests similar names; empty without similar names.

    Examples
    --------
    >>> did_you_mean("sensr", ["door", "sensor"])
    '; did you mean sensor instead of sensr?'
    """
    near = difflib.get_close_matches(name, known)
    return f"; did you mean {' or '.join(near)} instead of {name}?" if near else ""


@contextmanager
def suggesting(service: ServiceClient, named: Collection[tuple[str, str]]) -> Iterator[None]:
    """Add similar names to the error of a request that names unknown resources.

    Parameters
    ----------
    service
        Service that lists its names after it has rejected the request.
    named
        Kinds and names of resources in the request.

    Raises
    ------
    RefusedError
        The service rejected the request.
    """
    try:
        yield
    except RefusedError as error:
        if error.status not in {_NOT_FOUND, _INVALID}:
            raise
        hints = hint_names(service, named)
        raise RefusedError(f"{error}{hints}", error.status) from error


def hint_names(
    service: ServiceClient,
    named: Collection[tuple[str, str]],
    own: Collection[tuple[str, str]] = (),
) -> str:
    """Return a sentence ending that suggests names similar to unknown ones; empty without any.

    Parameters
    ----------
    service
        Service that lists its names.
    named
        Kinds and names of resources in a rejected request.
    own
        Further kinds and names that the user defines.
    """
    try:
        return "".join(_hint(service, kind, name, own) for kind, name in sorted(named))
    except ServiceError:
        return ""


def _hint(service: ServiceClient, kind: str, name: str, own: Collection[tuple[str, str]]) -> str:
    if (kind, name) in own or name in (known := service.names(kind)):
        return ""
    return did_you_mean(name, sorted({*known, *(it for kind_, it in own if kind_ == kind)}))
