"""Routes of templates."""

from fastapi import APIRouter, Response, status
from pydantic import BaseModel, Field

from service.api.body import JsonRoute
from service.api.common import (
    After,
    DryRun,
    Limit,
    Name,
    Plane,
    Preconditions,
    StoredResource,
    describe,
    etag,
)
from service.api.problems import responses
from service.models import TemplateDocument
from service.plane import ControlPlane
from service.registry import Stored

router = APIRouter(prefix="/v1/templates", tags=["templates"], route_class=JsonRoute)


class StoredTemplate(StoredResource):
    """A registered template."""

    used_by: dict[str, int] = Field(
        description="Streams that use it, each with the version that is in force there."
    )


class TemplatePage(BaseModel):
    """Some templates, by name."""

    items: list[StoredTemplate] = Field(description="The templates.")
    next: str | None = Field(description="Pass it as `after` for the next page; null: no more.")


@router.get("", responses=responses(422))
async def list_templates(plane: Plane, limit: Limit = 100, after: After = "") -> TemplatePage:
    """List the templates by name."""
    found, following = plane.registry.page("template", limit, after)
    return TemplatePage(items=[_shown(it, plane) for it in found], next=following)


@router.get("/{name}", responses=responses(404, 422))
async def get_template(name: Name, plane: Plane, response: Response) -> StoredTemplate:
    """Give a template."""
    stored = plane.find("template", name)
    response.headers["ETag"] = etag(stored.offset)
    return _shown(stored, plane)


@router.put(
    "/{name}",
    responses={
        201: {"model": StoredTemplate, "description": "Created"},
        202: {"model": StoredTemplate, "description": "Written, but not read back in time"},
        **responses(412, 413, 415, 422, 503),
    },
)
def put_template(
    name: Name,
    document: TemplateDocument,
    plane: Plane,
    check: Preconditions,
    response: Response,
    dry_run: DryRun = "false",
) -> StoredTemplate:
    """Register a template, or a new version of it; unchanged buckets write nothing.

    Streams keep the version that they have until their document is written again.
    """
    written = plane.put("template", name, document.normalised(), check, dry_run=dry_run == "true")
    describe(response, written, f"/v1/templates/{name}")
    return _shown(Stored(written.resource, written.offset or 0), plane)


@router.delete(
    "/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses={
        202: {"description": "Written, but not read back in time"},
        **responses(404, 409, 412, 422, 503),
    },
)
def delete_template(
    name: Name,
    plane: Plane,
    check: Preconditions,
    dry_run: DryRun = "false",
) -> Response:
    """Delete a template that no stream uses."""
    written = plane.delete("template", name, check, dry_run=dry_run == "true")
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    describe(response, written, f"/v1/templates/{name}")
    return response


def _shown(stored: Stored, plane: ControlPlane) -> StoredTemplate:
    resource = stored.resource
    return StoredTemplate(
        name=resource.name,
        version=resource.version,
        updated_at=resource.updated_at_us,
        document=resource.document,
        used_by=plane.registry.template_users(resource.name),
    )
