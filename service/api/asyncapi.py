"""Route of the AsyncAPI document."""

from typing import Any

from fastapi import APIRouter

from service.api.body import JsonRoute
from service.api.common import Plane
from service.asyncapi import make_document

router = APIRouter(prefix="/v1", tags=["state"], route_class=JsonRoute)


@router.get("/asyncapi.json")
async def get_asyncapi(plane: Plane) -> dict[str, Any]:
    """Return the AsyncAPI document: topics, and JSON Schemas of their records."""
    return make_document(plane.settings)
