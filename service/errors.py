"""The errors of this package; the table in service/api/problems.py gives each its HTTP status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from correlation.errors import InvalidFieldError

if TYPE_CHECKING:
    from types import TracebackType

# An answer lists up to this many problems.
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong."""

    field: Annotated[
        str, Field(description="Name of the field as written; empty: the whole document.")
    ]
    problem: Annotated[str, Field(description="What is wrong with it.")]
    remedy: Annotated[str, Field(description="What to write instead.")]


def first_problems(problems: Iterable[FieldProblem]) -> tuple[FieldProblem, ...]:
    """Return the first problems, and a last one that says whether there are more.

    Parameters
    ----------
    problems : iterable of FieldProblem
        Of a request; those beyond the first are not computed.
    """
    found = tuple(islice(problems, MOST_PROBLEMS + 1))
    if len(found) <= MOST_PROBLEMS:
        return found
    more = FieldProblem("", "more fields are not valid", "correct these first")
    return (*found[:MOST_PROBLEMS], more)


class ServiceError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    detail : str
        A sentence for the person who asked.
    problems : tuple of FieldProblem
        What is wrong, field by field.
    """

    def __init__(self, detail: str, problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = problems


class NotFoundError(ServiceError):
    """No resource has this name."""


class EventNotFoundError(ServiceError):
    """No record with the id was found in the part of its topic that was searched."""


class DependedUponError(ServiceError):
    """Conditions use the stream in a way that the write would break; they are listed."""


class TemplateInUseError(ServiceError):
    """Streams use the template that is to be deleted; they are listed."""


class PreconditionError(ServiceError):
    """If-Match or If-None-Match does not hold."""


class InvalidDocumentError(ServiceError):
    """The document is wrong; the problems name its fields."""

    @classmethod
    def of(cls, field: str, problem: str, remedy: str) -> InvalidDocumentError:
        """Make the error of one field."""
        return cls.of_all((FieldProblem(field, problem, remedy),))

    @classmethod
    def of_all(cls, problems: tuple[FieldProblem, ...]) -> InvalidDocumentError:
        """Make the error of several fields."""
        return cls(f"{problems[0].field or 'document'}: {problems[0].problem}", problems)


class DocumentErrors:
    """Collect the errors of several checks of a document, so that all are raised at once.

    Each check is made in a `with` block of its own. Of a field, only the problems that the first
    check finds are kept: what is wrong in itself seems wrong to later checks too.

    Parameters
    ----------
    fields : iterable of str
        Names of fields that are known to be wrong.
    """

    def __init__(self, fields: Iterable[str] = ()) -> None:
        self.problems: tuple[FieldProblem, ...] = ()
        self._fields = set(fields)
        self._errors: list[InvalidFieldError | InvalidDocumentError] = []

    def __enter__(self) -> None:
        """Begin a check."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Keep an error of fields; any other error is raised."""
        if not isinstance(error, InvalidFieldError | InvalidDocumentError):
            return False
        new = tuple(
            FieldProblem(it.field, it.problem, it.remedy)
            for it in error.problems
            if top_field(it.field) not in self._fields
        )
        self._fields.update(top_field(it.field) for it in new)
        if new:
            self.problems += new
            self._errors.append(error)
        return True

    def raise_all(self) -> None:
        """Raise what was found.

        Raises
        ------
        InvalidFieldError, InvalidDocumentError
            The only error, or one that lists the problems of all.
        """
        if self._errors:
            only = len(self._errors) == 1
            raise self._errors[0] if only else InvalidDocumentError.of_all(self.problems)


def top_field(field: str) -> str:
    """Return the field of the document itself that a nested one belongs to."""
    return field.partition(".")[0].partition("[")[0]


class InvalidQueryError(ServiceError):
    """A query parameter is unknown to the path, or given twice."""


class BodyError(ServiceError):
    """The body of a request is not JSON that can be read."""


class BodyTooLargeError(ServiceError):
    """The body of a request is longer than the service reads."""


class MediaTypeError(ServiceError):
    """The body of a request is declared to be something else than JSON."""


class BrokerError(ServiceError):
    """The broker did not answer in time, or refused."""


class BusyError(ServiceError):
    """Other writes are being made, too many or for too long; this one has not begun."""


class TopicRefusedError(ServiceError):
    """The broker does not want a topic of this name or size."""


class LogStoppedError(ServiceError):
    """The reader of the config topic stopped: a record cannot be read, or the log is broken."""


class NotReadyError(ServiceError):
    """The service has not read what was there when it was asked."""
