"""Streams and conditions in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.errors import UsageError
from cli.resources import ResourceFile, read_resources

if TYPE_CHECKING:
    from pathlib import Path

_YAML = """\
kind: within
name: near
a: acoustic
b: seismic
lower: 0s
upper: 2s
threshold: "0.6"
---
kind: stream
name: acoustic
topic: acoustic
longest: 200ms
max_delay: 1s
---
"""


def test_read_resources_puts_streams_first(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(_YAML)
    stream = {"topic": "acoustic", "longest": "200ms", "max_delay": "1s"}
    condition = {
        "kind": "within",
        "a": "acoustic",
        "b": "seismic",
        "lower": "0s",
        "upper": "2s",
        "threshold": "0.6",
    }
    read = read_resources([file])
    assert read == [
        ResourceFile("stream", "acoustic", stream),
        ResourceFile("condition", "near", condition),
    ]
    assert [resource.path for resource in read] == ["/v1/streams/acoustic", "/v1/conditions/near"]


def test_read_resources_takes_json_and_several_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text('{"kind": "stream", "name": "a", "topic": "x"}')
    second.write_text('{"kind": "stream", "name": "b", "topic": "y"}')
    assert [found.name for found in read_resources([first, second])] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n", "document 1 has no name"),
        ("name: a\n", "document 1 has no kind"),
        ("name: [a]\nkind: stream\n", "document 1 has no name"),
        ("- a\n", "document 1 is not a mapping"),
        ("{", "is neither YAML nor JSON"),
        ("", "hold no document"),
        ("---\n---\n", "hold no document"),
    ],
)
def test_read_resources_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_resources([file])


def test_read_resources_says_so_when_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_resources([tmp_path / "gone.yaml"])
