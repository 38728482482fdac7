"""Lists of a condition as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from cli.client.list_tables import FittedLists, ShownLists
from correlation.lists import Lists
from correlation.resources.topics import Channel
from tests.support.messages import assert_names

LISTS = Lists(
    Channel("best.current", compacted=True),
    ("place", "id"),
    lambda it: (str(it["n"]), it["id"]),
    lambda it: str(it["id"]),
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
    (line,) = lines_of(shown)
    assert_names(line, "c", "empty")
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


def fitted(shown: ShownLists, height: int, width: int = 60) -> list[str]:
    console = Console(width=width, height=height, highlight=False)
    with console.capture() as captured:
        console.print(FittedLists(shown))
    return [it.rstrip() for it in captured.get().splitlines()]


def test_list_is_cut_to_the_height_of_the_screen() -> None:
    shown = ShownLists("c", LISTS)
    (line,) = fitted(shown, 3)
    assert_names(line, "c", "empty")
    shown.take(update(None, *(f"x{n}" for n in range(1, 2001))))
    rows = ["place  id", *(f"{n:<5}  x{n}" for n in range(1, 2001))]
    title = "c  as of 1970-01-01T00:00:01Z"
    assert fitted(shown, 10) == [title, *rows[:8], "and 1,993 more"]
    # All items fit if they leave no room for the number of others.
    assert fitted(shown, 2002) == [title, *rows]
    assert fitted(shown, 2001) == [title, *rows[:1999], "and 2 more"]


def test_lists_that_do_not_fit_are_counted() -> None:
    shown = ShownLists("c", LISTS)
    for number in range(23):
        shown.take(update(f"k{number}", "x", "y", "z"))
    shown.take(update("large", error="too_large"))
    title = "c  {}  as of 1970-01-01T00:00:01Z"
    top = [title.format("large") + "  too_large", "place  id"]
    second = [title.format("k22"), "place  id", "1      x"]
    assert fitted(shown, 7) == [*top, *second, "and 2 more", "and 22 more lists"]
    assert fitted(shown, 8) == [*top, *second, "2      y", "3      z", "and 22 more lists"]
    assert fitted(shown, 6) == [*top, "and 23 more lists"]
    # Of all lists at most twenty are shown.
    assert fitted(shown, 1000)[-1] == "and 4 more lists"


def test_wrapped_items_fit_the_screen() -> None:
    shown = ShownLists("c", LISTS)
    shown.take(update(None, *(f"{n}" * 50 for n in range(1, 10))))
    # Each id takes two lines.
    *_, header, first, second, third, fourth, last = fitted(shown, 7, width=34)
    assert header == "place  id"
    assert [first, third] == ["1      " + "1" * 27, "2      " + "2" * 27]
    assert [second.strip(), fourth.strip()] == ["1" * 23, "2" * 23]
    assert last == "and 7 more"
    assert fitted(shown, 8, width=34) == fitted(shown, 7, width=34)
