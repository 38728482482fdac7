"""Query parameters: unknown parameters are rejected, never ignored.

If a misspelled `dry_run` were ignored, a trial DELETE would delete the resource.
"""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from fastapi import Request

from service.api.wording import by_nearness
from service.errors import FieldProblem, InvalidQueryError, first_problems

_VERSIONED = "/v1/"
_FOUND: ContextVar[tuple[FieldProblem, ...]] = ContextVar("query_problems", default=())


async def check_query(request: Request) -> None:
    """Find problems of the query; the endpoint raises them if the request is otherwise valid."""
    _FOUND.set(query_problems(request))


def refuse_query(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that raises the problems that `check_query` found.

    FastAPI calls an endpoint after it has validated the rest of the request. An error that a
    dependency raises earlier would hide the validation errors.
    """
    if iscoroutinefunction(endpoint):

        @wraps(endpoint)
        async def checked_async(**values: Any) -> Any:  # noqa: ANN401  of any endpoint
            _raise_found()
            return await endpoint(**values)

        return checked_async

    @wraps(endpoint)
    def checked(**values: Any) -> Any:  # noqa: ANN401  of any endpoint
        _raise_found()
        return endpoint(**values)

    return checked


def _raise_found() -> None:
    problems = _FOUND.get()
    if problems:
        raise InvalidQueryError(f"{problems[0].field}: {problems[0].problem}", problems)


def query_problems(request: Request) -> tuple[FieldProblem, ...]:
    """Find unknown and repeated query parameters of the paths under /v1.

    Parameters
    ----------
    request : Request
        The request, after routing.
    """
    if not request.url.path.startswith(_VERSIONED) or not request.query_params:
        return ()
    # The OpenAPI schema defines the accepted parameters; it is made when it is first needed.
    path = request.app.openapi()["paths"][request.scope["route"].path_format]
    described = path[request.method.lower()].get("parameters", ())
    known = [it["name"] for it in described if it["in"] == "query"]
    given = Counter(name for name, _ in request.query_params.multi_items())
    return first_problems(
        _unknown(name, known)
        if name not in known
        else FieldProblem(name, f"occurs {times} times", "write it once")
        for name, times in given.items()
        if name not in known or times > 1
    )


def _unknown(name: str, known: list[str]) -> FieldProblem:
    remedy = f"use one of: {', '.join(by_nearness(name, known))}" if known else "leave it out"
    return FieldProblem(name, "is not a query parameter of this path", remedy)
