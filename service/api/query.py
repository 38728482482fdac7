"""Query parameters: those that a route does not know are refused, never ignored.

A misspelt `dry_run` that is ignored deletes what was only to be looked at.
"""

from collections import Counter

from fastapi import Request

from service.api.wording import by_nearness
from service.errors import FieldProblem, InvalidQueryError, first_problems

_VERSIONED = "/v1/"


async def check_query(request: Request) -> None:
    """Refuse unknown and repeated query parameters on the paths under /v1.

    Parameters
    ----------
    request : Request
        As it was routed.

    Raises
    ------
    InvalidQueryError
        Naming each such parameter.
    """
    if not request.url.path.startswith(_VERSIONED):
        return
    # What /openapi.json says is what is taken.
    path = request.app.openapi()["paths"][request.scope["route"].path_format]
    described = path[request.method.lower()].get("parameters", ())
    known = [it["name"] for it in described if it["in"] == "query"]
    given = Counter(name for name, _ in request.query_params.multi_items())
    problems = first_problems(
        _unknown(name, known)
        if name not in known
        else FieldProblem(name, f"is given {times} times", "give it once")
        for name, times in given.items()
        if name not in known or times > 1
    )
    if problems:
        raise InvalidQueryError(f"{problems[0].field}: {problems[0].problem}", problems)


def _unknown(name: str, known: list[str]) -> FieldProblem:
    remedy = f"use one of: {', '.join(by_nearness(name, known))}" if known else "leave it out"
    return FieldProblem(name, "is not a query parameter of this path", remedy)
