"""The errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from correlation.reasons import Reason


class CorrelationError(Exception):
    """Base of all errors of this package."""


class InvalidSimilarityError(CorrelationError):
    """A similarity that an entry point registers cannot be used; raised when they are loaded.

    Parameters
    ----------
    entry_point : str
        Object that the entry point names.
    problem : str
        Why it cannot be used, and how to correct it.
    """

    def __init__(self, entry_point: str, problem: str) -> None:
        super().__init__(f"{entry_point}: {problem}")


class TextPlace(NamedTuple):
    """Place of an error in the text that a field contains.

    Parameters
    ----------
    line, column : int
        Line and column, from 1; the column counts characters.
    found : str
        Word at the place.
    expected : tuple of str
        What the grammar allows at the place; empty if the text has another error.
    excerpt : str
        Line of the place, and a line with a caret below the place.
    """

    line: int
    column: int
    found: str
    expected: tuple[str, ...]
    excerpt: str


class InvalidFieldError(CorrelationError, ValueError):
    """A field of the user's input is not valid; raised by the constructors of value types.

    Parameters
    ----------
    field : str
        Name of the field in the user's input.
    problem : str
        Why the value is not valid.
    remedy : str
        How to correct it.

    Attributes
    ----------
    place : TextPlace or None
        Place in the text of the field; None if the field does not contain text with lines.
    """

    place: TextPlace | None = None

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy
        self.problems: tuple[InvalidFieldError, ...] = (self,)


class InvalidFieldsError(InvalidFieldError):
    """Several fields of the user's input are not valid; `field` is the first of them.

    Parameters
    ----------
    problems : sequence of InvalidFieldError
        One error per field.
    """

    def __init__(self, problems: Sequence[InvalidFieldError]) -> None:
        super().__init__(problems[0].field, problems[0].problem, problems[0].remedy)
        self.args = ("\n".join(map(str, problems)),)
        self.problems = tuple(problems)


class FieldErrors:
    """Collector of the errors of several checks, which are raised together.

    Every error is kept: the checks of a value are independent of each other. `service.errors.
    DocumentErrors` collects the errors of checks that build on each other.

    >>> errors = FieldErrors()
    >>> with errors:
    ...     raise InvalidFieldError("a", "is missing", "add it")
    >>> errors.refuse("b", "is odd", "use an even number", when=3 % 2 == 1)
    >>> errors.raise_all()
    Traceback (most recent call last):
    correlation.errors.InvalidFieldsError: a: is missing; add it
    b: is odd; use an even number
    """

    def __init__(self) -> None:
        self._found: list[InvalidFieldError] = []

    def __enter__(self) -> None:
        """Begin a check."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Collect an InvalidFieldError; any other error propagates."""
        if isinstance(error, InvalidFieldError):
            self._found.extend(error.problems)
            return True
        return False

    def refuse(self, field: str, problem: str, remedy: str, *, when: bool) -> None:
        """Collect an error of a field if `when` is true."""
        if when:
            self._found.append(InvalidFieldError(field, problem, remedy))

    def extend(self, problems: Iterable[InvalidFieldError]) -> None:
        """Collect errors that a check returns instead of raising them."""
        self._found.extend(problems)

    def raise_all(self) -> None:
        """Raise the collected errors, if any.

        Raises
        ------
        InvalidFieldError
            The single error, or an InvalidFieldsError of several.
        """
        if self._found:
            raise self._found[0] if len(self._found) == 1 else InvalidFieldsError(self._found)


class UnknownRecordVersionError(CorrelationError):
    """A stored record was written by another version of this software, or by other software."""


class InvalidRecordError(CorrelationError, ValueError):
    """A field of a result's record is missing, or its value is not valid.

    Parameters
    ----------
    field : str
        Name of the field; those of inner objects are separated by dots.
    problem : str
        Why the value is not valid.
    remedy : str
        How to correct it.
    """

    def __init__(
        self,
        field: str,
        problem: str,
        remedy: str = "skip the record: it was damaged, or other software wrote it",
    ) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


class UnreadableRecordError(CorrelationError):
    """A record of the config topic does not hold a resource under its own key."""


class UnknownChannelError(CorrelationError):
    """A result names a channel that no kind of condition declares."""


class RejectedEventError(CorrelationError):
    """A record is not a valid event of its stream and goes to the dead-letter topic.

    Parameters
    ----------
    reason : Reason
        Reason code.
    detail : str
        Readable description of the problem.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
