"""Routes of templates."""

from fastapi import APIRouter, Response, status
from pydantic import BaseModel, Field

from service.api.body import JsonRoute
from service.api.common import (
    After,
    Limit,
    Name,
    Plane,
    StoredResource,
    Writing,
    delete_responses,
    etag,
    put_responses,
)
from service.api.problems import responses
from service.documents.models import TemplateDocument
from service.fold import Stored
from service.plane import ControlPlane

router = APIRouter(prefix="/v1/templates", tags=["templates"], route_class=JsonRoute)


class StoredTemplate(StoredResource):
    """A registered template."""

    used_by: dict[str, int] = Field(
        description="Streams that use the template, each with the version in force."
    )


class TemplatePage(BaseModel):
    """A page of templates, sorted by name."""

    items: list[StoredTemplate] = Field(description="The templates.")
    next: str | None = Field(description="Value of `after` for the next page; null: last page.")


@router.get("", responses=responses(422))
async def list_templates(plane: Plane, limit: Limit = 100, after: After = "") -> TemplatePage:
    """List the templates by name."""
    found, following = plane.registry.page("template", limit, after)
    return TemplatePage(items=[_shown(it, plane) for it in found], next=following)


@router.get("/{name}", responses=responses(404, 422))
async def get_template(name: Name, plane: Plane, response: Response) -> StoredTemplate:
    """Return a template."""
    stored = plane.find("template", name)
    response.headers["ETag"] = etag(stored.offset)
    return _shown(stored, plane)


@router.put("/{name}", responses=put_responses(StoredTemplate))
def put_template(
    name: Name, document: TemplateDocument, write: Writing, plane: Plane
) -> StoredTemplate:
    """Register a template or a new version of it; an unchanged document is not written.

    A stream keeps its version of the template until the stream's document is written again.
    """
    return _shown(write.put("template", name, document.normalised()), plane)


@router.delete(
    "/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=delete_responses(409),
)
def delete_template(name: Name, write: Writing) -> Response:
    """Delete a template that no stream uses."""
    return write.delete("template", name)


def _shown(stored: Stored, plane: ControlPlane) -> StoredTemplate:
    resource = stored.resource
    return StoredTemplate(
        name=resource.name,
        version=resource.version,
        updated_at=resource.updated_at_us,
        document=resource.document,
        used_by=plane.registry.template_users(resource.name),
    )
