"""Random attributes and filters, and columns of attributes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from correlation.buffers.columns import DictionaryColumn
from correlation.resources.attributes import Attribute, encode_value

DECLARED = (
    Attribute("rule", ("rule",)),
    Attribute("severity", ("severity",), "integer"),
    Attribute("level", ("level",), "number"),
    Attribute("open", ("open",), "boolean"),
)
TYPES: dict[str, str] = {it.name: it.type for it in DECLARED}
# Few values, so that constants and values are often equal or adjacent.
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    # In UTF-16, unlike in code points, U+1F525 is before U+FB01.
    "string": st.sampled_from(["", "A", "B", "a", "\u00e9", "\ufb01", "\U0001f525", 'x"\\']),
    "integer": st.sampled_from([-1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "number": st.sampled_from([-1, 0, 0.1, 0.30000000000000004, 0.3, 2**53, 1e22, 1e300, 5e-324]),
    "boolean": st.booleans(),
}


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the attributes of an event; some are missing."""
    return st.fixed_dictionaries({it.name: st.none() | _VALUES[it.type] for it in DECLARED})


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the document of a valid filter over `DECLARED`."""
    chosen = draw(st.lists(st.sampled_from(DECLARED), min_size=1, max_size=3, unique=True))
    return {it.name: draw(_wanted(it.type)) for it in chosen}


@st.composite
def _wanted(draw: st.DrawFn, kind: str) -> Any:  # noqa: ANN401 - any JSON value
    value = _VALUES[kind]
    some = value | st.lists(value, min_size=1, max_size=3)
    if draw(st.booleans()):
        return draw(some)
    found: dict[str, Any] = {}
    if kind != "boolean":
        low, high = sorted((draw(value), draw(value)))
        found |= draw(st.sampled_from([{}, {"min": low}, {"max": high}, {"min": low, "max": high}]))
    if not found or draw(st.booleans()):
        found["not"] = draw(some)
    return found


def columns(rows: list[dict[str, Any]]) -> dict[str, DictionaryColumn]:
    """Return the buffered columns of events with these attributes."""
    return {
        it.column_name: DictionaryColumn.from_list(
            [_encode(row.get(it.name), it.type) for row in rows]
        )
        for it in DECLARED
    }


def _encode(value: Any, kind: str) -> bytes | None:  # noqa: ANN401 - any JSON value
    if value is None:
        return None
    return encode_value(float(value) if kind == "number" else value)
