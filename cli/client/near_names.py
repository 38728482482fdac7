"""Names that are near one that does not exist: most likely the one that was meant."""

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
    """Return the end of a sentence with the names near a missing one; empty where none is near.

    Examples
    --------
    >>> did_you_mean("sensr", ["door", "sensor"])
    '; did you mean sensor instead of sensr?'
    """
    near = difflib.get_close_matches(name, known)
    return f"; did you mean {' or '.join(near)} instead of {name}?" if near else ""


@contextmanager
def suggesting(
    service: ServiceClient,
    named: Collection[tuple[str, str]],
    own: Collection[tuple[str, str]] = (),
) -> Iterator[None]:
    """Add near names to the refusal of a request that names what does not exist.

    Parameters
    ----------
    service
        Is asked for its names when it has refused the request.
    named
        Kinds and names of resources in the request.
    own
        Kinds and names that the user has beside those of the service.

    Raises
    ------
    RefusedError
        The service refused the request.
    """
    try:
        yield
    except RefusedError as error:
        if error.status not in {_NOT_FOUND, _INVALID}:
            raise
        try:
            hints = [_hint(service, kind, name, own) for kind, name in sorted(named)]
        except ServiceError:
            raise error from None
        raise RefusedError(f"{error}{''.join(hints)}", error.status) from error


def _hint(service: ServiceClient, kind: str, name: str, own: Collection[tuple[str, str]]) -> str:
    known = service.names(kind)
    if name in known:
        return ""
    return did_you_mean(
        name, sorted({*known, *(it for kind_, it in own if kind_ == kind)} - {name})
    )
