"""Access control in the OpenAPI document: schemes, and the answers of every protected operation."""

from collections.abc import Iterator
from typing import Any

from service.api.callers import METRICS, OPEN_PATHS, ROLES
from service.api.problems import responses
from service.settings import Settings

_SCHEMES: dict[str, dict[str, str]] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, or a token of the issuer.",
    },
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key."},
}
_PROBLEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_REFUSALS = (401, 403, 429, 503)


def describe_access(schema: dict[str, Any], settings: Settings) -> None:
    """Add access control to an OpenAPI document.

    Parameters
    ----------
    schema : dict
        The document.
    settings : Settings
        Settings of the service.
    """
    schema["components"]["securitySchemes"] = _SCHEMES
    for method, path, operation in _operations(schema):
        if path in OPEN_PATHS or (path == METRICS and settings.open_metrics):
            continue
        operation["security"] = [{name: []} for name in _SCHEMES]
        operation["description"] += f"\n\nNeeds the role {ROLES[method, path].label}."
        for status, response in responses(*_REFUSALS).items():
            described = {"description": response["description"], "content": dict(_PROBLEM)}
            operation["responses"].setdefault(str(status), described)


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation
