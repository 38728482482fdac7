"""Changes of a configuration as lines, with colours on a terminal only."""

from __future__ import annotations

from io import StringIO
from typing import Any

import orjson
import pytest
from rich.console import Console

from cli.client.configuration import Applied, changes_of, is_different, show_difference
from cli.client.resources import ResourceFile
from cli.main import main
from service.documents.schema import file_schema

RESOURCES = [
    ResourceFile("stream", "y", {}),
    ResourceFile("stream", "x", {}),
    ResourceFile("condition", "c", {}),
]
DIFFERENCE: dict[str, Any] = {
    "created": [{"kind": "stream", "name": "x"}],
    "changed": [
        {
            "kind": "condition",
            "name": "c",
            "fields": [
                {"field": "threshold", "old": "0.6", "new": "0.7"},
                {"field": "where", "old": None, "new": {"a": ["[b]", "\x1b[2J"]}},
                {"field": "query", "old": "x" * 500, "new": 1},
            ],
        }
    ],
    "unchanged": [{"kind": "stream", "name": "y"}],
    "deleted": [{"kind": "template", "name": "t"}],
    "warnings": {"x": ["topic: wrong", "topic: [wrong]"]},
}


def test_changes_are_in_the_order_of_the_files() -> None:
    assert list(changes_of(DIFFERENCE, RESOURCES)) == [
        Applied("stream", "y", "unchanged", []),
        Applied("stream", "x", "created", ["topic: wrong", "topic: [wrong]"]),
        Applied("condition", "c", "changed", []),
        Applied("template", "t", "deleted", []),
    ]


def shown(*, terminal: bool) -> str:
    console = Console(
        file=StringIO(),
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        highlight=False,
        soft_wrap=True,
    )
    show_difference(DIFFERENCE, RESOURCES, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_difference_shows_changed_fields() -> None:
    assert shown(terminal=False).splitlines() == [
        "created   stream x",
        "warning: topic: wrong",
        "warning: topic: [wrong]",
        "changed   condition c",
        '          threshold: "0.6" → "0.7"',
        r'          where: null → {"a": ["[b]", "\u001b[2J"]}',
        f'          query: "{"x" * 198}… → 1',
        "deleted   template t",
    ]
    assert "\x1b[32mcreated" in shown(terminal=True)


@pytest.mark.parametrize(
    ("change", "different"),
    [("created", True), ("changed", True), ("deleted", True), ("unchanged", False)],
)
def test_unchanged_resources_are_not_a_difference(change: str, different: bool) -> None:  # noqa: FBT001  a column of the table
    nothing: dict[str, Any] = {name: [] for name in ("created", "changed", "unchanged", "deleted")}
    assert is_different(nothing) is False
    assert is_different(nothing | {change: [{"kind": "stream", "name": "x"}]}) is different


def test_schema_command_writes_the_schema(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema"])
    assert ended.value.code == 0
    assert orjson.loads(capfdbinary.readouterr().out) == file_schema()
