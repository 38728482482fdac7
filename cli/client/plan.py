"""Display of a plan of any kind of condition: its sentences, then its other fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from correlation.printable import printable
from correlation.resources.durations import describe_duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_INDENT = 2
_DURATION = "_us"


def show_plan(name: str, plan: Mapping[str, Any], console: Console) -> None:
    """Print a plan.

    Parameters
    ----------
    name
        Name of the condition.
    plan
        Response of the service: fields of any kind of condition. `sentences`, if present, are
        shown first; lists of objects become tables, and durations in µs are written with units.
    console
        Console to print to.
    """
    console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
    for sentence in plan.get("sentences", ()):
        console.print(printable(str(sentence)), markup=False, soft_wrap=True)
    shown = {field: it for field, it in plan.items() if field != "sentences" and not _is_empty(it)}
    simple = {field: it for field, it in shown.items() if _is_simple(it)}
    if simple:
        console.print()
        console.print(_grid(simple))
    for field, value in shown.items():
        if field not in simple:
            console.print(f"\n[bold]{_title(field)}[/]")
            for part in _render(field, value):
                console.print(Padding(part, (0, 0, 0, _INDENT)))


def _render(field: str, value: object) -> Iterator[RenderableType]:
    """Yield the parts of a nested value; numbers have the unit of the field's name."""
    if isinstance(value, Mapping):
        yield from _render_object(field, value)
    elif not isinstance(value, list):
        yield escape(printable(str(value), kept="\n"))
    elif value and all(isinstance(it, Mapping) for it in value):
        yield _table(value)
    else:
        for it in value:
            yield from _render(field, it)


def _render_object(field: str, value: Mapping[str, Any]) -> Iterator[RenderableType]:
    unit = _DURATION if field.endswith(_DURATION) else ""
    named = {name.removesuffix(unit) + unit: it for name, it in value.items()}
    simple = {name: it for name, it in named.items() if _is_simple(it)}
    if simple:
        yield _grid(simple)
    nested = {name: it for name, it in named.items() if name not in simple}
    if len(nested) > 1 and all(map(_is_flat, nested.values())):
        yield _table([{"": name, **it} for name, it in nested.items()])
        return
    for name, it in nested.items():
        if not _is_empty(it):
            yield f"[dim]{_title(name)}[/]"
            for part in _render(name, it):
                yield Padding(part, (0, 0, 0, _INDENT))


def _grid(values: Mapping[str, Any]) -> Table:
    """Return a grid of names and single values."""
    grid = Table.grid(padding=(0, 2))
    for name, it in values.items():
        grid.add_row(f"[dim]{_title(name)}[/]", escape(_shown(name, it)))
    return grid


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of objects; their fields are the columns, in the order of appearance."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(_title(name), overflow="fold")
    for row in rows:
        table.add_row(*(escape(_shown(name, row.get(name))) for name in names))
    return table


def _is_flat(value: object) -> bool:
    return isinstance(value, Mapping) and not any(
        isinstance(it, Mapping | list) for it in value.values()
    )


def _is_simple(value: object) -> bool:
    return not isinstance(value, Mapping | list) and "\n" not in str(value)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping | list) and not value)


def _title(field: str) -> str:
    return escape(printable(field.removesuffix(_DURATION).replace("_", " ")))


def _shown(field: str, value: object) -> str:
    """Return a value in words: durations with units, lists one item per line.

    A list of lists has alternatives, one per line; the items of an alternative hold together.
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field.endswith(_DURATION) and isinstance(value, int):
        return describe_duration(value)
    if isinstance(value, list):
        nested = any(isinstance(it, list) for it in value)
        lines = (_shown_together(field, it) for it in value)
        return ("\nor " if nested else "\n").join(lines)
    if isinstance(value, Mapping):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(str(value), kept="\n")


def _shown_together(field: str, item: object) -> str:
    """Return an item of a list in words, or the items of an alternative in one line."""
    if isinstance(item, list):
        return " and ".join(_shown(field, it) for it in item) or "-"
    return _shown(field, item)
