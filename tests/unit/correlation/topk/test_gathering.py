"""Sets of a time range, gathered from segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from correlation.buffers.columns import Column, DictionaryColumn, SetsColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.limits import UNKNOWN_WATERMARK
from correlation.resources.attributes import column_name, encode_value
from correlation.resources.filters import read_filter
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.topk.cells import Division
from correlation.topk.gathering import Part, Range, gather_sets, list_keys
from correlation.two_streams import NO_FILTERS, Where

# Key, id, time and tokens of an event.
Row = tuple[str, str, int, str]
RED = read_filter({"color": "red"}, None)


def make_segment(rows: Sequence[Row], *, colors: Sequence[str] = (), sets: bool = True) -> Segment:
    """Return a segment of a stream with tokens; each letter is a token."""
    events = Events.from_rows(
        "s",
        [
            (key.encode(), name.encode(), time, time, 0, place, 0)
            for place, (key, name, time, _) in enumerate(rows)
        ],
    )
    columns: dict[str, Column] = {}
    if sets:
        columns[TOKENS_COLUMN] = SetsColumn.from_list(
            [sorted(it.encode() for it in tokens) for *_, tokens in rows]
        )
    if colors:
        columns[column_name("color")] = DictionaryColumn.from_list([*map(encode_value, colors)])
    found, _ = Segment.from_events(replace(events, columns=columns), np.zeros(len(rows), np.bool_))
    return found


ALL = Range(-100, 100)
Gathered = list[tuple[bytes | None, list[tuple[int, int, str, str]]]]


def gather(
    *parts: Part, within: Range = ALL, where: Where = NO_FILTERS, per_key: bool = False
) -> Gathered:
    """Return the sets of each list, as (time, side, id, tokens)."""
    return [
        (
            key,
            [
                (time, side, name.decode(), "".join(sorted(it.decode() for it in tokens)))
                for time, side, name, tokens in zip(
                    sets.time_us.tolist(),
                    sets.side.tolist(),
                    sets.id.to_list(),
                    sets.tokens.to_list(),
                    strict=True,
                )
            ],
        )
        for key, sets in gather_sets(parts, within, where, Division(per_key, 1, crossed=True))
    ]


def test_sets_are_in_the_order_of_time_side_and_id() -> None:
    left = make_segment([("k", "b", 2, "x"), ("j", "a", 2, "xy"), ("k", "c", 1, "z")])
    right = make_segment([("k", "0", 2, "q"), ("k", "9", 0, "x")])
    more = make_segment([("k", "ab", 2, "w"), ("k", "", 2, "v")])
    assert gather(Part(1, right), Part(0, left), Part(0, more)) == [
        (
            None,
            [
                (0, 1, "9", "x"),
                (1, 0, "c", "z"),
                (2, 0, "", "v"),
                (2, 0, "a", "xy"),
                (2, 0, "ab", "w"),
                (2, 0, "b", "x"),
                (2, 1, "0", "q"),
            ],
        )
    ]


def test_each_key_has_a_list_in_the_order_of_keys() -> None:
    left = make_segment([("k", "b", 2, "x"), ("j", "a", 3, "y"), ("k", "c", 1, "z")])
    right = make_segment([("j", "0", 3, "q"), ("i", "e", 0, "")])
    assert gather(Part(0, left), Part(1, right), per_key=True) == [
        (b"j", [(3, 0, "a", "y"), (3, 1, "0", "q")]),
        (b"k", [(1, 0, "c", "z"), (2, 0, "b", "x")]),
    ]


@pytest.mark.parametrize(
    ("within", "names"),
    [
        (Range(1, 3), "abc"),
        (Range(2, 2), "b"),
        (Range(2, 100), "bc"),
        (Range(-100, 1), "a"),
        (Range(4, 100), ""),
        (Range(-100, 0), ""),
        (Range(3, 1), ""),
    ],
)
def test_both_ends_of_the_range_belong_to_it(within: Range, names: str) -> None:
    part = Part(0, make_segment([("k", name, time, "x") for time, name in enumerate("abc", 1)]))
    found = gather(part, within=within)
    assert found == ([(None, [(" abc".index(it), 0, it, "x") for it in names])] if names else [])


def test_empty_sets_and_events_without_tokens_are_left_out() -> None:
    rows = [("k", "a", 1, ""), ("k", "b", 1, "x")]
    assert gather(Part(0, make_segment(rows)), Part(0, make_segment(rows, sets=False))) == [
        (None, [(1, 0, "b", "x")])
    ]
    assert gather(Part(0, make_segment(rows[:1]))) == []
    assert gather() == []


def test_each_side_has_its_filter() -> None:
    rows = [("k", "a", 1, "x"), ("k", "b", 2, "x")]
    segment = make_segment(rows, colors=["red", "blue"])
    parts = Part(0, segment), Part(1, segment)
    first, second = [(1, 0, "a", "x"), (2, 0, "b", "x")], [(1, 1, "a", "x"), (2, 1, "b", "x")]
    assert gather(*parts, where=Where(a=RED)) == [(None, sorted([first[0], *second]))]
    assert gather(*parts, where=Where(b=RED)) == [(None, sorted([*first, second[0]]))]
    assert gather(*parts, where=Where(RED, RED)) == [(None, [first[0], second[0]])]


def test_arrival_is_known_of_fresh_events() -> None:
    segment = make_segment([("k", "a", 1, "x"), ("k", "b", 2, "x")])
    older = make_segment([("k", "c", 0, "x")])
    parts = [Part(0, older), Part(0, segment, np.array([70, 80]))]
    ((_, sets),) = gather_sets(
        parts, Range(0, 9), NO_FILTERS, Division(per_key=False, groups=1, crossed=False)
    )
    assert sets.arrived_us.tolist() == [UNKNOWN_WATERMARK, 70, 80]
    taken = sets.take(np.array([2, 0]))
    assert (taken.id.to_list(), taken.arrived_us.tolist()) == (
        [b"b", b"c"],
        [80, UNKNOWN_WATERMARK],
    )
    assert len(taken) == 2


@pytest.mark.parametrize(
    ("crossed", "lists"),
    [
        (
            False,
            [
                (b"\0\0", False, [("a", 0), ("b", 0)]),
                (b"\0\1", True, [("c", 0), ("d", 1)]),
                (b"\1\1", False, [("e", 0)]),
            ],
        ),
        (
            True,
            [
                (b"\0\0", True, [("a", 0), ("b", 1)]),
                # Group 0 of A and group 1 of B.
                (b"\0\1", True, [("c", 0)]),
                # Group 1 of A and group 0 of B.
                (b"\1\0", True, [("d", 0), ("e", 1)]),
            ],
        ),
    ],
)
def test_each_cell_of_a_grid_has_lists(
    *, crossed: bool, lists: list[tuple[bytes, bool, list[tuple[str, int]]]]
) -> None:
    """Copies of group h in the cell {h, k} have the key (h, k)."""
    if crossed:
        left = [("\0\0", "a", 1, "x"), ("\0\1", "c", 1, "x"), ("\1\0", "d", 1, "x")]
        right = [("\0\0", "b", 1, "x"), ("\0\1", "e", 1, "x")]
        parts = [Part(0, make_segment(left)), Part(1, make_segment(right))]
    else:
        rows = [("\0\0", "a"), ("\0\0", "b"), ("\0\1", "c"), ("\1\0", "d"), ("\1\1", "e")]
        parts = [Part(0, make_segment([(key, name, 1, "x") for key, name in rows]))]
    division = Division(per_key=False, groups=2, crossed=crossed)
    assert [
        (
            key,
            division.is_crossed(key),
            [*zip([it.decode() for it in sets.id.to_list()], sets.half.tolist(), strict=True)],
        )
        for key, sets in gather_sets(parts, ALL, NO_FILTERS, division)
    ] == lists


def test_keys_of_all_events_of_a_range_are_listed() -> None:
    left = make_segment([("k", "a", 1, "x"), ("j", "b", 2, ""), ("m", "c", 5, "x")])
    right = make_segment([("i", "d", 2, "x"), ("k", "e", 3, "x")], sets=False)
    parts = [Part(0, left), Part(1, right)]
    assert list_keys(parts, Range(1, 3)) == [b"i", b"j", b"k"]
    assert list_keys(parts, Range(5, 5)) == [b"m"]
    assert list_keys([], Range(0, 9)) == []
