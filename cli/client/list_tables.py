"""Lists of a condition as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from correlation.printable import printable
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from correlation.lists import Lists

# Lists that fit a screen; the lists that changed last are shown.
_SHOWN_LISTS = 20
# A list: `condition`, `key` if it has one, and `items`, or null if the list was withdrawn.
Update = dict[str, Any]


class ShownLists:
    """The lists of a condition as tables, those that changed last first.

    Parameters
    ----------
    name
        Name of the condition.
    lists
        The lists of its kind.
    """

    def __init__(self, name: str, lists: Lists) -> None:
        self._name = name
        self._lists = lists
        self._present: dict[str | None, Update] = {}

    def take(self, update: Update) -> Group:
        """Apply an update; return the tables of all lists."""
        key = update.get("key")
        self._present.pop(key, None)
        if update["items"] is not None:
            self._present[key] = update
        return self.render()

    def render(self) -> Group:
        """Return the tables of all lists."""
        if not self._present:
            return Group(Text(f"{self._name}: the list is empty"))
        newest = [*reversed(self._present.values())]
        shown = newest[:_SHOWN_LISTS]
        more = len(newest) - len(shown)
        parts = [part for it in shown for part in (self._title(it), self._table(it))]
        return Group(*parts, *([Text(f"and {more:,} more lists")] if more else []))

    def _title(self, found: Update) -> Text:
        key = "" if found.get("key") is None else f"  {found['key']}"
        moment = "" if found.get("as_of") is None else f"  as of {describe_moment(found['as_of'])}"
        title = Text(printable(f"{self._name}{key}{moment}"))
        if found.get("error") is not None:
            title.append(f"  {printable(str(found['error']))}", "red")
        return title

    def _table(self, found: Update) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in self._lists.columns:
            # Ids are wrapped, not cut.
            table.add_column(column, overflow="fold")
        for item in found["items"]:
            cells = self._lists.cells(item)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        return table
