"""The list of the demo: its plain judge, and the check of lists and changes."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import TypeAdapter
from rich.console import Console

from cli.demo.list_check import follow_changes, verify_lists
from cli.demo.list_judge import Listed, ListJudge
from cli.demo.messages import Message, load_messages, message_events
from cli.demo.resources import ALIKE, LISTS, STREAMS
from cli.errors import VerificationError
from cli.replay.options import EventFile, ReplayOptions
from cli.replay.run import run_replay
from service.documents.fields import Document
from service.documents.models import ConditionDocument
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.demo.events import DemoEvent

S = 1_000_000
CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
STORED = CONDITIONS.validate_python(LISTS[ALIKE]).normalised()
# The example: two pairs of messages of at least two words, valid for ten seconds.
SMALL = {
    **STORED,
    "k": 2,
    "window_us": 10 * S,
    "where": {"a": {"words": {"min": 2}, "repeated": False}},
}
EXAMPLE = message_events(
    Message(name, "c", "s", text, time * S)
    for name, time, text in (
        ("m1", 0, "red green"),
        ("m2", 2, "Red, green, blue!"),
        ("m3", 4, "green red"),
        ("m4", 4, "red"),
        ("m5", 6, "red green pink"),
        ("m6", 6, "blue red"),
        ("m7", 16, "pink white"),
    )
)
# m3 repeats m1, and m4 has a single word.
M12 = Listed("m1", "m2", 2, 2 / 3)
M15 = Listed("m1", "m5", 2, 2 / 3)
M26 = Listed("m2", "m6", 2, 2 / 3)
M25 = Listed("m2", "m5", 2, 1 / 2)


@pytest.mark.parametrize(
    ("as_of_us", "expected"),
    [
        (2 * S - 1, []),
        (2 * S, [M12]),
        (6 * S - 1, [M12]),
        # m2 is valid for longer than m1; m2 is earlier than m5.
        (6 * S, [M26, M12]),
        (10 * S, [M26, M12]),
        (10 * S + 1, [M26, M25]),
        (12 * S, [M26, M25]),
        # m5 and m6, and m5 and m7, have only a quarter of their words in common.
        (12 * S + 1, []),
        (16 * S, []),
    ],
)
def test_judge_finds_the_pairs_of_the_example(as_of_us: int, expected: list[Listed]) -> None:
    assert ListJudge(SMALL, EXAMPLE).list_at(as_of_us) == expected


def test_judge_orders_pairs_of_the_same_older_message_by_the_newer_one() -> None:
    judge = ListJudge({**SMALL, "k": 3}, EXAMPLE)
    assert judge.list_at(6 * S) == [M26, M12, M15]


def _item(rank: int, pair: Listed) -> dict[str, Any]:
    found = pair._asdict()
    return {**found, "rank": rank, "older": {"id": pair.older}, "newer": {"id": pair.newer}}


def _list(as_of_us: int, *pairs: Listed) -> dict[str, Any]:
    items = [_item(rank, pair) for rank, pair in enumerate(pairs, start=1)]
    return {"as_of": as_of_us, "items": items}


def _change(time_us: int, change: str, rank: int, pair: Listed) -> dict[str, Any]:
    return {**_item(rank, pair), "time": time_us, "change": change}


WRITTEN = [
    _list(3 * S, M12),
    _list(7 * S, M26, M12),
    _list(11 * S, M26, M25),
    {"items": None},
]
# Changes of different pairs may be read in another order.
CHANGES = [
    _change(7 * S, "entered", 1, M26),
    _change(13 * S, "left", 1, M26),
    _change(3 * S, "entered", 1, M12),
    _change(7 * S, "moved", 2, M12),
    _change(11 * S, "left", 2, M12),
    _change(11 * S, "entered", 2, M25),
    _change(13 * S, "left", 2, M25),
]


def _verify(lists: list[dict[str, Any]], changes: list[dict[str, Any]]) -> int:
    return verify_lists(ListJudge(SMALL, EXAMPLE), lists, changes, 16 * S)


def test_right_lists_and_changes_are_accepted() -> None:
    # Three present lists, the lists after four times, and both at the end.
    assert _verify(WRITTEN, CHANGES) == 9
    followed = {time_us // S: pairs for time_us, pairs in follow_changes(CHANGES)}
    assert followed == {3: [M12], 7: [M26, M12], 11: [M26, M25], 13: []}


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


@pytest.mark.parametrize(
    ("place", "changed", "names"),
    [
        (1, _list(7 * S, M26, M15), [f"present list as of {at(7)} differs"]),
        (1, _list(7 * S, M12, M26), [f"present list as of {at(7)} differs"]),
        (1, _list(7 * S, M26), [f"present list as of {at(7)} differs"]),
        (1, _list(6 * S - 1, M26, M12), ["present list", "1970-01-01T00:00:05.999999Z"]),
        (0, _list(3 * S, M12._replace(similarity=0.6)), [f"present list as of {at(3)} differs"]),
        (0, _list(3 * S, M12._replace(overlap=3)), [f"present list as of {at(3)} differs"]),
        (3, _list(11 * S, M26, M25), ["last present list", f"{at(16)} differs"]),
        (1, {"items": None}, [at(7), "2 pairs", "a withdrawal"]),
        # Right at its time, but no change has it.
        (1, _list(8 * S, M26, M12), [at(7), "2 pairs", f"a list as of {at(8)}"]),
        (
            1,
            {"as_of": 7 * S, "items": [_item(1, M26), _item(3, M12)]},
            ["present list", at(7), "ranks [1, 3]"],
        ),
        (
            1,
            {"as_of": 7 * S, "items": [_item(2, M26), _item(1, M12)]},
            ["present list", at(7), "ranks [2, 1]"],
        ),
    ],
)
def test_wrong_present_list_is_found(place: int, changed: dict[str, Any], names: list[str]) -> None:
    lists = deepcopy(WRITTEN)
    lists[place] = changed
    with pytest.raises(VerificationError, match=naming(*names)):
        _verify(lists, CHANGES)


@pytest.mark.parametrize(
    ("mutate", "names"),
    [
        # A list is missing, or written twice.
        (lambda it: it.pop(0), [at(3), "1 pairs", f"a list as of {at(7)}"]),
        (lambda it: it.pop(1), [at(7), "2 pairs", f"a list as of {at(11)}"]),
        (lambda it: it.pop(), ["last present list", f"{at(16)} differs"]),
        (lambda it: it.insert(1, it[0]), [at(7), "2 pairs", f"a list as of {at(3)}"]),
        # The list is withdrawn in between, or twice.
        (lambda it: it.insert(1, {"items": None}), ["2 pairs", "a withdrawal"]),
        (lambda it: it.append({"items": None}), ["without a change", "a withdrawal"]),
        # Lists are in another order.
        (lambda it: it.insert(0, it.pop(1)), [at(3), "1 pairs", f"a list as of {at(7)}"]),
    ],
)
def test_missing_repeated_and_withdrawn_lists_are_found(
    mutate: Callable[[list[dict[str, Any]]], object], names: list[str]
) -> None:
    lists = deepcopy(WRITTEN)
    mutate(lists)
    with pytest.raises(VerificationError, match=naming(*names)):
        _verify(lists, CHANGES)


def test_lists_that_are_all_missing_are_found() -> None:
    """Even if the last list has no pairs."""
    changes = [_change(3 * S, "entered", 1, M12), _change(13 * S, "left", 1, M12)]
    assert _verify([_list(3 * S, M12), {"items": None}], changes) == 5
    with pytest.raises(VerificationError, match=naming("no list", "1970-01-01T00:00:03Z")):
        _verify([], changes)


@pytest.mark.parametrize(
    ("mutate", "names"),
    [
        (lambda it: it.pop(3), ["from the changes", f"{at(7)} differs"]),
        (lambda it: it.pop(2), ["moved", "not in the list", "Listed(older='m1'"]),
        (lambda it: it.append(it[2]), ["entered", "twice", at(3)]),
        (lambda it: it.append(_change(12 * S, "entered", 1, M26)), ["entered", "already"]),
        # The rank of a pair that left is that before; a pair that moved has another one.
        (lambda it: it[4].update(rank=1), ["left", "rank 2, not 1"]),
        (
            lambda it: it.append(_change(12 * S, "moved", 1, M26)),
            ["moved", "rank 1 already", "Listed(older='m2'"],
        ),
        (lambda it: it[3].update(rank=3), ["from the changes", f"{at(7)} differs"]),
        (lambda it: it.pop(1), ["from the changes", f"{at(13)} differs"]),
        (lambda it: it[5].update(rank=3), ["from the changes", f"{at(11)} differs"]),
        (lambda it: it[5].update(older={"id": "m3"}), ["from the changes", f"{at(11)} differs"]),
        (lambda it: it[6].update(older={"id": "m3"}), ["left", "not in the list"]),
        (lambda it: it[5].update(time=12 * S), ["from the changes", f"{at(11)} differs"]),
        (lambda it: it[5].update(rank=1), ["None], not [Listed(older"]),
    ],
)
def test_wrong_changes_are_found(
    mutate: Callable[[list[dict[str, Any]]], object], names: list[str]
) -> None:
    changes = deepcopy(CHANGES)
    mutate(changes)
    with pytest.raises(VerificationError, match=naming(*names)):
        _verify(WRITTEN, changes)


def test_missing_output_is_found() -> None:
    with pytest.raises(VerificationError, match="the last present list"):
        verify_lists(ListJudge(SMALL, EXAMPLE), [], [], 7 * S)


def _replayed(
    folder: Path, events: list[DemoEvent]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the last present lists and the changes of a replay of messages."""
    resources, file = folder / "resources.yaml", folder / "messages.jsonl"
    stream = {"kind": "stream", "name": "messages", **STREAMS["messages"]}
    condition = {"name": ALIKE, **LISTS[ALIKE]}
    resources.write_bytes(b"\n---\n".join(map(orjson.dumps, (stream, condition))))
    file.write_bytes(b"\n".join(event.value for event in events))
    options = ReplayOptions(
        (resources,),
        (EventFile("messages", 0, file, "jsonl"),),
        processes=1,
        alarms=folder / "changes.jsonl",
        force=True,
    )
    report = run_replay(options, Console(stderr=True))
    changes = [*map(orjson.loads, (folder / "changes.jsonl").read_bytes().splitlines())]
    return report["conditions"][ALIKE]["lists"], changes


def test_lists_of_a_replay_are_those_of_the_judge(tmp_path: Path) -> None:
    messages = message_events(load_messages(16_500)[14_000:])
    lists, changes = _replayed(tmp_path, messages)
    judge = ListJudge(STORED, messages)
    end_us = messages[-1].latest_us
    assert len(judge.list_at(end_us)) == STORED["k"]
    assert {it["change"] for it in changes} == {"entered", "left", "moved"}
    # A replay shows the last list alone.
    before = [_list(at, *filter(None, pairs)) for at, pairs in follow_changes(changes)][:-1]
    lists = [*before, *lists]
    verify_lists(judge, lists, changes, end_us)
    # The older message of the best pair is another one.
    lists[-1]["items"][0]["older"] = lists[-1]["items"][1]["older"]
    with pytest.raises(VerificationError, match="the present list"):
        verify_lists(judge, lists, changes, end_us)
