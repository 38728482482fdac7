"""Query parameters: those that a route does not know are refused, never ignored.

A misspelt `dry_run` that is ignored deletes what was only to be looked at.
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
    """Find what is wrong with the query; the endpoint raises it if nothing else is wrong."""
    _FOUND.set(query_problems(request))


def refuse_query(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that raises what `check_query` found.

    FastAPI calls an endpoint when the rest of the request is valid: until then it collects what is
    wrong, and an error that a dependency raises would hide that.
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
        As it was routed.
    """
    if not request.url.path.startswith(_VERSIONED):
        return ()
    # What /openapi.json says is what is taken.
    path = request.app.openapi()["paths"][request.scope["route"].path_format]
    described = path[request.method.lower()].get("parameters", ())
    known = [it["name"] for it in described if it["in"] == "query"]
    given = Counter(name for name, _ in request.query_params.multi_items())
    return first_problems(
        _unknown(name, known)
        if name not in known
        else FieldProblem(name, f"is given {times} times", "give it once")
        for name, times in given.items()
        if name not in known or times > 1
    )


def _unknown(name: str, known: list[str]) -> FieldProblem:
    remedy = f"use one of: {', '.join(by_nearness(name, known))}" if known else "leave it out"
    return FieldProblem(name, "is not a query parameter of this path", remedy)
