"""Lists of a condition as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from correlation.printable import printable
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

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

    def apply(self, update: Update) -> None:
        """Apply an update."""
        key = update.get("key")
        self._present.pop(key, None)
        if update["items"] is not None:
            self._present[key] = update

    def take(self, update: Update) -> Group:
        """Apply an update; return the tables of all lists."""
        self.apply(update)
        return self.render()

    def render(self, most: int | None = None) -> Group:
        """Return the tables of all lists.

        Parameters
        ----------
        most
            Max number of items, 1 or more; the last lines count the items and lists left out.
            None: all items.
        """
        if not self._present:
            return Group(Text(f"{self._name}: the list is empty"))
        newest = [*reversed(self._present.values())]
        parts, shown, left = list[RenderableType](), 0, most
        for it in newest[:_SHOWN_LISTS]:
            if left is not None and left <= 0:
                break
            items = it["items"][:left]
            parts += [self._title(it), self._table(items)]
            cut = len(it["items"]) - len(items)
            if cut:
                parts.append(Text(f"and {cut:,} more"))
            shown += 1
            if left is not None:
                # A list without items takes lines, too.
                left -= max(len(items), 1)
        more = len(newest) - shown
        return Group(*parts, *([Text(f"and {more:,} more lists")] if more else []))

    def _title(self, found: Update) -> Text:
        key = "" if found.get("key") is None else f"  {found['key']}"
        moment = "" if found.get("as_of") is None else f"  as of {describe_moment(found['as_of'])}"
        title = Text(printable(f"{self._name}{key}{moment}"))
        if found.get("error") is not None:
            title.append(f"  {printable(str(found['error']))}", "red")
        return title

    def _table(self, items: Sequence[Mapping[str, Any]]) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in self._lists.columns:
            # Ids are wrapped, not cut.
            table.add_column(column, overflow="fold")
        for item in items:
            cells = self._lists.cells(item)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        return table


class FittedLists:
    """The lists with as many items as fit the screen.

    rich's live view cannot replace lines that have left the screen, and would cut the lists without
    the number of items left out.

    Parameters
    ----------
    shown
        The lists.
    """

    def __init__(self, shown: ShownLists) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the largest view that fits."""
        height = options.size.height
        # An item takes a line or, if its cells are wrapped, several.
        for most in range(height, 0, -1):
            found = self._shown.render(most)
            if len(console.render_lines(found, options, pad=False)) <= height:
                yield found
                return
        # A screen of a few lines: the live view cuts the list.
        yield self._shown.render(1)
