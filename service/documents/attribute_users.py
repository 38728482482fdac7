"""Conditions that use the attributes of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from service.errors import DependedUponError, FieldProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from correlation.operators import Condition
    from correlation.resources.streams import Stream


def check_attribute_users(
    readers: Iterable[Condition], streams: Mapping[str, Stream], before: Stream, after: Stream
) -> None:
    """Check that a change of a stream's attributes does not break the conditions that use them.

    Parameters
    ----------
    readers : iterable of Condition
        Conditions that read the stream.
    streams : mapping of name to Stream
        Streams of the conditions.
    before, after : Stream
        The stream before and after the change.

    Raises
    ------
    DependedUponError
        When a condition uses an attribute that is missing after the change, or has another type;
        the conditions are listed.
    """
    if before.attributes == after.attributes:
        return
    unchanged = replace(after, attributes=before.attributes, where=None)
    found = {}
    for reader in readers:
        error = _error_of(reader, {**streams, after.name: after})
        if error is not None and _error_of(reader, {**streams, after.name: unchanged}) is None:
            found[reader.name] = error
    if found:
        raise DependedUponError(
            f"attributes: {', '.join(sorted(found))} use the attributes",
            tuple(
                FieldProblem(
                    f"conditions.{name}",
                    f"{error.field}: {error.problem}",
                    f"change the condition first: PUT /v1/conditions/{name}",
                )
                for name, error in sorted(found.items())
            ),
        )


def _error_of(condition: Condition, streams: Mapping[str, Stream]) -> InvalidFieldError | None:
    try:
        KINDS[condition.kind].check(condition, streams)
    except InvalidFieldError as error:
        return error
    return None
