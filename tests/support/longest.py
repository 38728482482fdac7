"""The toy kind that maintains lists, registered in this process, and its output."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import correlation.engine.conditions
import correlation.engine.registered
import correlation.kinds
from correlation.resources.topics import Channel
from tests.toy import longest_kind, toy_kind

if TYPE_CHECKING:
    import pytest

    from correlation.engine.blocks import Outcome

TOY_FOLDER = Path(__file__).parents[1] / "toy"
# Channels of a job that runs with the kinds of the folder.
TOY_CHANNELS = (
    *correlation.kinds.CHANNELS,
    Channel("longest", "Changes of the lists of the longest events."),
    Channel("longest.current", "Lists of the longest events.", compacted=True),
)
# Kinds of such a job.
TOY_KINDS = (*correlation.kinds.KINDS.values(), *toy_kind.KINDS, *longest_kind.KINDS)


def register_longest_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the kind for programs of this process, until the test ends."""
    monkeypatch.syspath_prepend(str(TOY_FOLDER))
    (kind,) = import_module("longest_kind").KINDS
    kinds = MappingProxyType({**correlation.kinds.KINDS, kind.name: kind})
    for module in (correlation.kinds, correlation.engine.conditions, correlation.engine.registered):
        monkeypatch.setattr(module, "KINDS", kinds)


class Written(NamedTuple):
    """Records of an outcome: changes as (change, id, reason), and lists by key, with their ids."""

    changes: list[tuple[str, str, str]]
    lists: list[tuple[str, list[str] | None]]


def read_written(outcome: Outcome) -> Written:
    """Return the changes and lists of an outcome, in their order."""
    changes: list[tuple[str, str, str]] = []
    lists: list[tuple[str, list[str] | None]] = []
    for result in outcome.results:
        channel = result.heading(0).channel
        for record in result.records(outcome.detected_at_us):
            found: dict[str, Any] | None = (
                None if record.value is None else json.loads(record.value)
            )
            if channel == "longest" and found is not None:
                changes.append((found["change"], found["id"], found["reason"]))
            else:
                items = None if found is None else [it["id"] for it in found["items"]]
                lists.append((record.key.decode(), items))
    return Written(changes, lists)
