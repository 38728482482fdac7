"""The errors of this package; the table in service/api/problems.py gives each its HTTP status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

# An answer lists up to this many problems.
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong in a request.

    Parameters
    ----------
    field : str
        Name of the field as the user wrote it, nested ones with dots; empty: the whole document.
    problem : str
        What is wrong with it.
    remedy : str
        What to write instead.
    """

    field: str
    problem: str
    remedy: str


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
        found = FieldProblem(field, problem, remedy)
        return cls(f"{field or 'document'}: {problem}", (found,))


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
