"""Roles of the routes, and the caller of a request."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Request

from service.access.callers import Caller, Role

READYZ = "/readyz"
# Paths without access control: the checks of orchestrators.
OPEN_PATHS = frozenset({"/livez", READYZ})
METRICS = "/metrics"
_CONDITION = "/v1/conditions/{name}"
# Role that each route needs. A route that is missing here needs the role admin; a test compares the
# table with the routes.
ROLES: Mapping[tuple[str, str], Role] = {
    **{
        ("GET", path): Role.VIEWER
        for path in (
            *("/livez", "/readyz", METRICS, "/v1/job", "/v1/config", "/v1/schema", "/v1/alarms"),
            *("/v1/job/slots", "/v1/alarms/{topic}/{partition}/{offset}"),
            *("/v1/asyncapi.json", "/v1/streams", "/v1/streams/{name}"),
            *("/v1/streams/{name}/status", "/v1/templates", "/v1/templates/{name}"),
            *("/v1/conditions", _CONDITION, f"{_CONDITION}/plan", f"{_CONDITION}/status"),
            f"{_CONDITION}/topk",
        )
    },
    ("POST", "/v1/conditions:validate"): Role.VIEWER,
    ("POST", f"{_CONDITION}/explain"): Role.VIEWER,
    **{
        (method, f"/v1/{kind}/{{name}}"): Role.EDITOR
        for kind in ("streams", "templates", "conditions")
        for method in ("PUT", "DELETE")
    },
    ("PUT", f"{_CONDITION}/pause"): Role.EDITOR,
    ("PUT", f"{_CONDITION}/resume"): Role.EDITOR,
    ("POST", "/v1/streams/{name}/reset-watermark"): Role.EDITOR,
    ("PUT", "/v1/job/slots"): Role.ADMIN,
    # A dry run writes nothing; a write needs the role editor (`ConfigurationWrites.put`).
    ("PUT", "/v1/config"): Role.VIEWER,
}


def caller_of(request: Request) -> Caller:
    """Return the caller of a request, which the middleware has found."""
    found: Caller = request.state.caller
    return found


def require_role(request: Request) -> None:
    """Check the role of the caller for the route of a request.

    Raises
    ------
    ForbiddenError
        When the route needs another role.
    """
    place = (request.method, request.scope["route"].path_format)
    caller_of(request).require_role(ROLES.get(place, Role.ADMIN))


async def _caller(request: Request) -> Caller:
    return caller_of(request)


CallerOf = Annotated[Caller, Depends(_caller)]
