"""Errors of this package; the table in service/api/problems.py maps them to HTTP statuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from correlation.errors import InvalidFieldError

if TYPE_CHECKING:
    from types import TracebackType

# Max number of problems in a response.
MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a problem in text of several lines."""

    line: Annotated[int, Field(description="Line, from 1.")]
    column: Annotated[int, Field(description="Column in characters, from 1.")]
    found: Annotated[str, Field(description="Word at the place.")]
    expected: Annotated[
        tuple[str, ...], Field(description="Words that the grammar allows; empty: another problem.")
    ]
    excerpt: Annotated[str, Field(description="The line, and a line with a caret below the place.")]


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One problem of a document or request."""

    field: Annotated[
        str, Field(description="Name of the field as written; empty: the whole document.")
    ]
    problem: Annotated[str, Field(description="Problem of the field.")]
    remedy: Annotated[str, Field(description="How to correct it.")]
    place: Annotated[
        Place | None,
        Field(
            description="Place in the text of the field; missing: the field has no such text.",
            exclude_if=lambda it: it is None,
        ),
    ] = None
    resource: Annotated[
        str | None,
        Field(
            description="Kind and name of the resource, kind/name; missing: the request has one "
            "resource.",
            exclude_if=lambda it: it is None,
        ),
    ] = None

    @classmethod
    def of(cls, error: InvalidFieldError, field: str | None = None) -> FieldProblem:
        """Return the problem of an error, optionally under another name of its field."""
        place = None if error.place is None else Place(*error.place)
        shown = error.field if field is None else field
        return cls(shown, error.problem, error.remedy, place)


def first_problems(problems: Iterable[FieldProblem]) -> tuple[FieldProblem, ...]:
    """Return the first problems, followed by a note if more problems exist.

    Parameters
    ----------
    problems : iterable of FieldProblem
        Problems of a request; problems beyond the limit are not computed.
    """
    found = tuple(islice(problems, MAX_PROBLEMS + 1))
    if len(found) <= MAX_PROBLEMS:
        return found
    more = FieldProblem("", "further fields are not valid", "correct these fields first")
    return (*found[:MAX_PROBLEMS], more)


class ServiceError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    detail : str
        A sentence for the user.
    problems : tuple of FieldProblem
        The problems, field by field.
    """

    def __init__(self, detail: str, problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = problems
        # Headers of the response.
        self.headers: Mapping[str, str] = {}


class UnauthenticatedError(ServiceError):
    """The request has no credentials, or they are not valid.

    Parameters
    ----------
    detail : str
        A sentence for the user.
    challenge : str
        Value of the header WWW-Authenticate.
    """

    def __init__(self, detail: str, challenge: str) -> None:
        super().__init__(detail)
        self.headers = {"WWW-Authenticate": challenge}


class ForbiddenError(ServiceError):
    """The caller lacks the role or the right that the request needs."""


class ForeignHostError(ServiceError):
    """The Host header of a request does not name this service."""


class ForeignOriginError(ServiceError):
    """A page of another site sends the request."""


class TooManyRequestsError(ServiceError):
    """The caller sends requests faster than the limit.

    Parameters
    ----------
    detail : str
        A sentence for the user.
    seconds : int
        Time until a request will be accepted.
    """

    def __init__(self, detail: str, seconds: int) -> None:
        super().__init__(detail)
        self.headers = {"Retry-After": str(seconds)}


class AccessSettingsError(ServiceError):
    """Settings of access control are not valid, or a file that they name cannot be used."""


class NotFoundError(ServiceError):
    """No resource has this name."""


class NoListError(ServiceError):
    """The kind of the condition does not maintain a list."""


class EventNotFoundError(ServiceError):
    """No record with the id was found in the part of its topic that was searched."""


class NoSampleError(ServiceError):
    """A topic from which a sample is to be read does not exist, or has no records."""


class DependedUponError(ServiceError):
    """The write would break conditions that read the stream; they are listed."""


class TemplateInUseError(ServiceError):
    """Streams use the template that is to be deleted; they are listed."""


class PreconditionError(ServiceError):
    """The resource does not match If-Match or If-None-Match."""


class InvalidDocumentError(ServiceError):
    """The document is not valid; the problems name its fields."""

    @classmethod
    def of(cls, field: str, problem: str, remedy: str) -> InvalidDocumentError:
        """Build the error of one field."""
        return cls.of_all((FieldProblem(field, problem, remedy),))

    @classmethod
    def of_all(cls, problems: tuple[FieldProblem, ...]) -> InvalidDocumentError:
        """Build the error of several fields."""
        return cls(f"{problems[0].field or 'document'}: {problems[0].problem}", problems)


class InvalidConfigurationError(ServiceError):
    """Resources of a configuration are not valid; the problems name resources and fields."""


class DocumentErrors:
    """Collect the errors of several checks of a document, so that all are raised at once.

    Each check runs in its own `with` block. For each field, only the problems of the first failing
    check are kept: later checks would report the same wrong value again. `FieldErrors` of
    `correlation.errors` keeps all of them, and does not know the service's own errors.

    Parameters
    ----------
    fields : iterable of str
        Names of fields that are already known not to be valid.
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
        """Collect a field error; other errors propagate."""
        if not isinstance(error, InvalidFieldError | InvalidDocumentError):
            return False
        new = tuple(
            FieldProblem.of(it) if isinstance(it, InvalidFieldError) else it
            for it in error.problems
            if top_field(it.field) not in self._fields
        )
        self._fields.update(top_field(it.field) for it in new)
        if new:
            self.problems += new
            self._errors.append(error)
        return True

    def raise_all(self) -> None:
        """Raise the collected errors.

        Raises
        ------
        InvalidFieldError, InvalidDocumentError
            The single collected error, or an error that lists the problems of all.
        """
        if self._errors:
            only = len(self._errors) == 1
            raise self._errors[0] if only else InvalidDocumentError.of_all(self.problems)


def top_field(field: str) -> str:
    """Return the top-level field of a nested field."""
    return field.partition(".")[0].partition("[")[0]


class InvalidQueryError(ServiceError):
    """A query parameter of the path is unknown or repeated."""


class InvalidPositionError(ServiceError):
    """The Last-Event-ID of a request is not the id of an event of this installation."""


class AlarmNotFoundError(ServiceError):
    """A record is not in the memory of recent alarms."""


class NoAlarmsError(ServiceError):
    """The service does not follow alarms: the setting is 0."""


class TooManyReadersError(ServiceError):
    """The max number of live feeds of alarms is open."""


class BodyError(ServiceError):
    """The body of a request cannot be parsed as JSON."""


class BodyTimeoutError(ServiceError):
    """The body of a request did not arrive in time."""


class BodyTooLargeError(ServiceError):
    """The body of a request exceeds the max size."""


class NotAcceptableError(ServiceError):
    """The resource has no representation of the media type that the request accepts."""


class MediaTypeError(ServiceError):
    """The Content-Type of a request is not JSON."""


class BrokerError(ServiceError):
    """The broker did not answer in time, or refused the request."""


class BusyError(ServiceError):
    """Too many writes are waiting, or the wait was too long; this write has not begun."""


class OvertakenError(ServiceError):
    """Another instance of the service has begun to write; nothing was written."""


class TopicRefusedError(ServiceError):
    """The broker refuses to create, read or change a topic.

    Parameters
    ----------
    detail : str
        A sentence for the user.
    topic : str
        The topic.
    """

    def __init__(self, detail: str, topic: str) -> None:
        super().__init__(detail)
        self.topic = topic


class LogStoppedError(ServiceError):
    """The reader of the config topic stopped: a record cannot be read, or the log is broken."""


class IssuerError(ServiceError):
    """The issuer of tokens has never answered with its keys."""


class NotReadyError(ServiceError):
    """The service has not caught up with the config topic, or too many lookups are running."""
