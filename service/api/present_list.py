"""Route of the list that a condition maintains."""

import logging
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from correlation.kinds import KINDS
from correlation.lists import Lists
from service.api.body import JsonRoute
from service.api.common import Limit, Name, Plane
from service.api.problems import responses
from service.errors import NoListError
from service.lists import UNREADABLE

router = APIRouter(prefix="/v1", tags=["conditions"], route_class=JsonRoute)
_log = logging.getLogger(__name__)
# Join keys are of any length.
AfterKey = Annotated[
    str, Query(description="Start after this join key: `next` of the previous page.")
]
JoinKey = Annotated[
    str | None, Query(description="Join key of the list, for conditions with one list per key.")
]


class ListRow(BaseModel):
    """An item of a list, as text."""

    name: str = Field(description="Identity of the item when it moves to another rank.")
    cells: list[str] = Field(description="A cell for each of `columns`.")


class PresentListAnswer(BaseModel):
    """The list of a condition, or one of its lists, as the job wrote it last."""

    condition: str = Field(description="Name of the condition.")
    key: str | None = Field(description="Join key of the list; null: list of all keys together.")
    applied_version: int | None = Field(
        description="Version of the condition that the job evaluates; null: none yet."
    )
    version: int | None = Field(
        description="Version of the condition that wrote the list; null: the list is empty, or "
        "was not written yet."
    )
    as_of: int | None = Field(
        description="Time up to which events have taken effect, in µs; null as `version`."
    )
    detected_at: int | None = Field(
        description="Time at which the job wrote the list, in µs; null as `version`."
    )
    error: str | None = Field(
        description="too_large: the list exceeds the size limit of its topic; unreadable or "
        "unknown_version: other software wrote it. The list is then empty here."
    )
    items: list[dict[str, Any]] = Field(description="Items of the list, the first place first.")
    columns: tuple[str, ...] = Field(description="Titles of the columns of `rows`, the rank first.")
    rows: list[ListRow] = Field(description="The items as a table, as their kind shows them.")
    keys: list[str] = Field(
        description="Join keys that have a list: a page. Empty if `key` is given."
    )
    next: str | None = Field(description="Value of `after` for the next page of `keys`; or null.")


@router.get("/conditions/{name}/topk", responses=responses(404, 422))
def get_present_list(
    name: Name,
    plane: Plane,
    key: JoinKey = None,
    limit: Limit = 100,
    after: AfterKey = "",
) -> PresentListAnswer:
    """Return the present list of a condition whose kind maintains one.

    The list is empty while the job has not written it, while the condition is paused, and if no
    event takes part in it.
    """
    kind = str(plane.find("condition", name).resource.document["kind"])
    view, lists = plane.lists.of_kind(kind), KINDS[kind].lists
    if view is None or lists is None:
        having = ", ".join(it.name for it in KINDS.values() if it.lists is not None)
        remedy = f"kinds with a list: {having}" if having else "no kind maintains a list"
        raise NoListError(f"condition {name!r} is of the kind {kind}, which has no list; {remedy}")
    page = view.keys(name, limit, after)
    found = view.find(name, key) or {}
    rows = _rows(lists, found)
    if rows is None:
        found, rows = {"error": UNREADABLE}, []
    return PresentListAnswer(
        condition=name,
        key=key,
        applied_version=plane.metrics.condition(name).applied_version,
        version=found.get("version"),
        as_of=found.get("as_of"),
        detected_at=found.get("detected_at"),
        error=found.get("error"),
        items=found.get("items", []),
        columns=lists.columns,
        rows=rows,
        keys=page.keys if key is None else [],
        next=page.next if key is None else None,
    )


def _rows(lists: Lists, found: Mapping[str, Any]) -> list[ListRow] | None:
    """Return the items as a table; None if other software wrote them."""
    try:
        items = found.get("items", [])
        return [ListRow(name=lists.name(it), cells=[*lists.cells(it)]) for it in items]
    # Kinds of other packages may raise anything.
    except Exception:  # noqa: BLE001 - see above
        _log.debug("a list cannot be shown", exc_info=True)
        return None
