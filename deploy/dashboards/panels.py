"""Dashboards and panels as values; `deploy.dashboards.board` builds them with Grafana's SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

# Kinds of panels: a line chart, areas above each other, one number, a heat map of buckets.
PanelKind = Literal["lines", "areas", "number", "heat"]
# Units of Grafana; "" is a number without a unit.
Unit = Literal["", "s", "bytes", "percentunit", "cps", "bool_yes_no"]


class Query(NamedTuple):
    """An expression with the legend of its series, such as ``{{stream}}``."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a dashboard.

    Parameters
    ----------
    title : str
        Title; unique in its dashboard.
    hint : str
        How to read the panel, one or two sentences. The descriptions of its metrics follow it.
    queries : tuple of Query
        Its expressions.
    unit : str
        Unit of the values.
    kind : str
        lines, areas, number or heat.
    width : int
        Width in twenty-fourths of the dashboard.
    bad_from : float or None
        Min value that is shown in red; None: the colours have no meaning.
    bad_below : float or None
        Values below this are shown in red.
    """

    title: str
    hint: str
    queries: tuple[Query, ...]
    unit: Unit = ""
    kind: PanelKind = "lines"
    width: int = 12
    bad_from: float | None = None
    bad_below: float | None = None


class Row(NamedTuple):
    """A titled row of panels."""

    title: str
    panels: tuple[Panel, ...]


class Board(NamedTuple):
    """A dashboard.

    Attributes
    ----------
    name : str
        Name of its file, without the suffix; the address in Grafana is `coincide-NAME`.
    title : str
        Title in Grafana.
    description : str
        The questions that the dashboard answers.
    rows : tuple of Row
        Its panels.
    """

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]


def number(
    title: str,
    hint: str,
    expression: str,
    unit: Unit = "",
    *,
    bad_from: float | None = None,
    bad_below: float | None = None,
) -> Panel:
    """Return a panel that shows the present value of one expression."""
    query = Query(expression, title)
    return Panel(title, hint, (query,), unit, "number", 4, bad_from, bad_below)
