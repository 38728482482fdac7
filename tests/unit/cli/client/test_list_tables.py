"""Lists of a condition as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from cli.client.list_tables import ShownLists
from correlation.lists import Lists
from correlation.resources.topics import Channel

LISTS = Lists(
    Channel("best.current", compacted=True), ("place", "id"), lambda it: (str(it["n"]), it["id"])
)
SECOND_US = 1_000_000


def lines_of(shown: ShownLists) -> list[str]:
    console = Console(width=60, highlight=False)
    with console.capture() as captured:
        console.print(shown.render())
    return [it.rstrip() for it in captured.get().splitlines()]


def update(key: str | None, *ids: str, **more: object) -> dict[str, Any]:
    named = {} if key is None else {"key": key}
    items = [{"n": n, "id": name} for n, name in enumerate(ids, start=1)]
    return {"condition": "c", **named, "as_of": SECOND_US, "items": items, **more}


def test_list_is_a_table_below_its_condition_and_time() -> None:
    shown = ShownLists("c", LISTS)
    assert lines_of(shown) == ["c: the list is empty"]
    shown.take(update(None, "x", "y\x1b[2J"))
    assert lines_of(shown) == [
        "c  as of 1970-01-01T00:00:01Z",
        "place  id",
        "1      x",
        "2      y\\x1b[2J",
    ]


def test_lists_that_changed_last_are_first_and_withdrawn_ones_are_gone() -> None:
    shown = ShownLists("c", LISTS)
    for it in (update("k", "x"), update("q", "y"), update("z", "a"), update("k", "b")):
        shown.take(it)
    shown.take({"condition": "c", "key": "z", "items": None})
    titles = [it for it in lines_of(shown) if it.startswith("c")]
    assert titles == [f"c  {key}  as of 1970-01-01T00:00:01Z" for key in ("k", "q")]


def test_list_that_is_too_large_has_its_error_in_the_title() -> None:
    shown = ShownLists("c", LISTS)
    shown.take(update("k", error="too_large"))
    assert lines_of(shown)[0] == "c  k  as of 1970-01-01T00:00:01Z  too_large"


def test_number_of_further_lists_is_shown() -> None:
    shown = ShownLists("c", LISTS)
    for number in range(23):
        shown.take(update(f"k{number}", "x"))
    assert lines_of(shown)[-1] == "and 3 more lists"


def test_long_cells_are_wrapped_and_not_cut() -> None:
    shown = ShownLists("c", LISTS)
    shown.take(update(None, "x" * 100))
    assert "".join(lines_of(shown)).count("x") == 100
