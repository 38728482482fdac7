"""Changes of a stream that the conditions on it do not survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from service.errors import DependedUponError, FieldProblem, InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from correlation.operators import Condition
    from correlation.resources.streams import Stream


def problems_of(condition: Condition, streams: Mapping[str, Stream]) -> Sequence[InvalidFieldError]:
    """Return the reasons why a condition cannot be evaluated on streams; empty if it can."""
    try:
        KINDS[condition.kind].check(condition, streams)
    except InvalidFieldError as error:
        return error.problems
    return ()


def refuse_broken(
    readers: Iterable[Condition],
    before: Mapping[str, Stream],
    after: Mapping[str, Stream],
    stream: str,
) -> None:
    """Check that conditions that can be evaluated on a stream still can after its change.

    Parameters
    ----------
    readers : iterable of Condition
        Conditions that read the stream.
    before, after : mapping of name to Stream
        Their streams before and after the change.
    stream : str
        Name of the stream that changes.

    Raises
    ------
    DependedUponError
        When they cannot; they are listed with their problems.
    """
    problems = [
        FieldProblem(
            f"conditions.{reader.name}",
            f"{it.field}: {it.problem}",
            f"change the condition first, or: {it.remedy}",
        )
        for reader in readers
        for it in problems_of(reader, after)
        if not problems_of(reader, before)
    ]
    if problems:
        raise DependedUponError(
            f"conditions cannot use the changed stream {stream}: {problems[0].field}: "
            f"{problems[0].problem}",
            tuple(problems),
        )


def refuse_unsupported(
    reader: Condition, streams: Mapping[str, Stream], stream: Stream, before: Stream | None
) -> None:
    """Check that a condition supports histograms, templates or events that last, if they are new.

    Other changes are refused by `refuse_broken`.

    Parameters
    ----------
    reader : Condition
        A condition that reads the stream.
    streams : mapping of name to Stream
        Its streams after the change.
    stream : Stream
        The stream after the change.
    before : Stream or None
        The stream before the change; None: it is new.

    Raises
    ------
    InvalidDocumentError
        When the condition does not support them.
    """
    had_shapes = before is not None and before.has_shapes
    lasted = before is not None and before.lasts
    if stream.has_shapes <= had_shapes and stream.lasts <= lasted:
        return
    try:
        KINDS[reader.kind].check(reader, streams)
    except InvalidFieldError as error:
        field = "histograms" if stream.histograms else "templates"
        raise InvalidDocumentError.of(
            "mapping.begin" if stream.lasts else field,
            f"condition {reader.name} does not support them: {error.field}: {error.problem}",
            f"remove them, or change the condition first: {error.remedy}",
        ) from error
