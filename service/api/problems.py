"""Problem bodies (RFC 9457): the table from errors to HTTP statuses, and the handlers.

Every response of 400 and above is a problem, including the errors that FastAPI and Starlette raise.
"""

import http
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from correlation.errors import CorrelationError, InvalidFieldError
from correlation.resources.records import ResourceKind
from service import errors
from service.api.documents import (
    condition_problems,
    configuration_problems,
    document_problems,
    problem_of_field,
    valid_document_problems,
)
from service.api.query import query_problems
from service.api.wording import field_problems
from service.errors import FieldProblem, InvalidQueryError, ServiceError, first_problems

MEDIA_TYPE = "application/problem+json"
_LOGGER = logging.getLogger(__name__)


class Entry(NamedTuple):
    """Status, numeric code and title of an error; codes never change their meaning."""

    status: int
    error_code: int
    title: str


# The only place that defines statuses.
TABLE: Mapping[type[Exception], Entry] = {
    errors.BodyError: Entry(422, 42201, "The body cannot be read"),
    RequestValidationError: Entry(422, 42202, "The request is not valid"),
    errors.InvalidDocumentError: Entry(422, 42203, "The document is not valid"),
    InvalidFieldError: Entry(422, 42204, "A field is not valid"),
    InvalidQueryError: Entry(422, 42206, "A query parameter is not valid"),
    errors.InvalidPositionError: Entry(422, 42207, "The position is not valid"),
    errors.InvalidConfigurationError: Entry(422, 42208, "The configuration is not valid"),
    errors.UnauthenticatedError: Entry(401, 40101, "Credentials are missing or not valid"),
    errors.ForbiddenError: Entry(403, 40301, "The role or right is missing"),
    errors.ForeignOriginError: Entry(403, 40302, "A page of another site sends the request"),
    errors.ForeignHostError: Entry(421, 42101, "The host is not a name of this service"),
    errors.TooManyRequestsError: Entry(429, 42901, "Too many requests"),
    errors.BodyTimeoutError: Entry(408, 40801, "The body did not arrive in time"),
    errors.BodyTooLargeError: Entry(413, 41301, "The body is too large"),
    errors.NotAcceptableError: Entry(406, 40601, "The media type is not available"),
    errors.MediaTypeError: Entry(415, 41501, "The body must be JSON"),
    errors.NotFoundError: Entry(404, 40401, "The resource does not exist"),
    errors.EventNotFoundError: Entry(404, 40402, "The event was not found"),
    errors.NoListError: Entry(404, 40403, "The condition has no list"),
    errors.NoSampleError: Entry(404, 40404, "The sample was not found"),
    errors.NoAlarmsError: Entry(404, 40405, "Alarms are not followed"),
    errors.AlarmNotFoundError: Entry(404, 40406, "The alarm is not in memory"),
    errors.DependedUponError: Entry(409, 40901, "Conditions depend on the stream"),
    errors.TemplateInUseError: Entry(409, 40902, "Streams use the template"),
    errors.PreconditionError: Entry(412, 41201, "A precondition failed"),
    errors.BrokerError: Entry(503, 50301, "Kafka does not answer"),
    errors.TopicRefusedError: Entry(422, 42205, "The broker rejected the topic"),
    errors.LogStoppedError: Entry(503, 50302, "The service no longer reads the config topic"),
    errors.NotReadyError: Entry(503, 50303, "Not ready"),
    errors.BusyError: Entry(503, 50304, "Too many concurrent writes"),
    errors.TooManyReadersError: Entry(503, 50305, "Too many readers of alarms"),
    errors.IssuerError: Entry(503, 50306, "The issuer of tokens does not answer"),
    ServiceError: Entry(500, 50001, "Internal error"),
    CorrelationError: Entry(500, 50001, "Internal error"),
}
_INTERNAL = Entry(500, 50001, "Internal error")
_ROUTING = {
    404: (40400, "The path does not exist"),
    405: (40500, "The path does not support this method"),
}
RETRY_AFTER_SECONDS = 5
# Kind of the document in the body, by route; PUT of the configuration has many.
_DOCUMENTS: Mapping[str, ResourceKind] = {
    "/v1/streams/{name}": "stream",
    "/v1/conditions/{name}": "condition",
    "/v1/templates/{name}": "template",
}
_CONFIGURATION = "/v1/config"
_VALIDATION = "/v1/conditions:validate"


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="URI of the kind of problem.")
    title: str = Field(description="Title of the kind of problem.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="Description of this occurrence.")
    error_code: int = Field(description="Stable number of the kind of problem.")
    errors: list[FieldProblem] = Field(description="Problems, one for each field.")


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe problems as responses of a route.

    Parameters
    ----------
    *statuses : int
        HTTP statuses.
    """
    return {
        status: {"model": Problem, "description": http.HTTPStatus(status).phrase}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Add handlers that answer every error with a problem.

    Parameters
    ----------
    app : FastAPI
        The application.
    """
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(InvalidQueryError, _on_query_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(ServiceError, _on_own_error)
    app.add_exception_handler(CorrelationError, _on_own_error)
    app.add_exception_handler(Exception, _on_anything)


def _answer(
    entry: Entry,
    detail: str,
    problems: Iterable[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    # Not validated: pydantic rejects unpaired surrogates.
    body = Problem.model_construct(
        type=f"urn:coincide:problem:{entry.error_code}",
        title=entry.title,
        status=entry.status,
        detail=detail,
        error_code=entry.error_code,
        errors=list(problems),
    )
    more = (
        {"Retry-After": str(RETRY_AFTER_SECONDS)}
        if entry.status == http.HTTPStatus.SERVICE_UNAVAILABLE
        else {}
    )
    return _ProblemResponse(body.model_dump(), entry.status, {**(headers or {}), **more})


class _ProblemResponse(JSONResponse):
    media_type = MEDIA_TYPE

    def render(self, content: object) -> bytes:
        """Return the problem as JSON; unpaired surrogates, which cannot be encoded, become `?`."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _entry(error: Exception) -> Entry:
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), _INTERNAL)


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    return await _answer_request(request, query_problems(request), errors)


async def _on_query_error(request: Request, error: Exception) -> JSONResponse:
    return await _answer_request(request, getattr(error, "problems", ()), ())


async def _answer_request(
    request: Request, query: tuple[FieldProblem, ...], errors: Iterable[Mapping[str, Any]]
) -> JSONResponse:
    """Answer a request that is not valid with the problems of query, path, headers and document."""
    # Problems in the value of a repeated parameter are not reported.
    twice = [("query", it.field) for it in query]
    found = [it for it in errors if it["loc"] not in twice]
    kind = _DOCUMENTS.get(request.scope["route"].path_format) or ""
    of_body = [it for it in found if it["loc"][:1] == ("body",)]
    of_rest = [it for it in found if it["loc"][:1] != ("body",)]
    body = field_problems(of_body, ("body",), kind)
    rest = field_problems(of_rest, ("query", "path", "header"))
    if hasattr(request.state, "document"):
        body = await to_thread.run_sync(_with_further, request, body)
    problems = first_problems((*query, *rest, *body))
    detail = f"{problems[0].field or 'request'}: {problems[0].problem}" if problems else "invalid"
    only_query = not found and len(problems) == len(query)
    return _answer(
        TABLE[InvalidQueryError if only_query else RequestValidationError], detail, problems
    )


def _with_further(request: Request, body: tuple[FieldProblem, ...]) -> tuple[FieldProblem, ...]:
    """Return the problems of the body, and those that its model does not find."""
    plane, document = request.app.state.plane, request.state.document
    path = request.scope["route"].path_format
    if path == _CONFIGURATION:
        prune = request.query_params.get("prune") == "true"
        further = configuration_problems(plane.registry, document, plane.now_us(), prune=prune)
        return (*body, *further)
    if path == _VALIDATION:
        # A body without the field, or of another type, is a problem that the model finds.
        condition = document.get("condition") if isinstance(document, Mapping) else None
        if not isinstance(condition, Mapping):
            return body
        return (*body, *condition_problems(plane.registry, condition))
    kind = _DOCUMENTS.get(path)
    if kind is None:
        return body
    if body:
        return document_problems(plane.registry, kind, document, body)
    return valid_document_problems(plane.registry, kind, request.path_params["name"], document)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    phrase = http.HTTPStatus(status).phrase
    code, title = _ROUTING.get(status, (status * 100, phrase))
    headers = dict(getattr(error, "headers", None) or {})
    detail = str(getattr(error, "detail", phrase))
    if status == http.HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed_methods(request))
        detail = f"{request.method} is not supported; use {headers['Allow']}"
    return _answer(Entry(status, code, title), detail, headers=headers)


def answer_error(error: ServiceError) -> JSONResponse:
    """Return the response to an error that is raised outside the routes."""
    return _answer(_entry(error), error.detail, error.problems, error.headers)


async def _on_own_error(request: Request, error: Exception) -> JSONResponse:
    entry, document = _entry(error), getattr(request.state, "document", None)
    if isinstance(error, InvalidFieldError):
        problems = first_problems(problem_of_field(it, document) for it in error.problems)
        return _answer(entry, f"{problems[0].field}: {problems[0].problem}", problems)
    if isinstance(error, ServiceError):
        problems = first_problems(problem_of_field(it, document) for it in error.problems)
        return _answer(entry, error.detail, problems, error.headers)
    _LOGGER.error("%s %a failed: %s", request.method, request.url.path, error)
    return _answer(entry, "the service failed; see its log")


async def _on_anything(request: Request, error: Exception) -> JSONResponse:
    _LOGGER.error("%s %a failed: %s", request.method, request.url.path, error)
    # Starlette calls this handler outside of all other middleware.
    return _answer(_INTERNAL, "the service failed; see its log", headers=request.app.state.headers)


def _allowed_methods(request: Request) -> list[str]:
    found: set[str] = set()
    for route in request.app.routes:
        candidates = getattr(route, "effective_candidates", None)
        for candidate in candidates() if candidates is not None else [route]:
            match, _ = candidate.matches(request.scope)
            if match != Match.NONE:
                found |= set(getattr(candidate, "methods", None) or ())
    return sorted(found)
