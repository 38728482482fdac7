"""Streams and conditions in files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.client.resources import ResourceFile, read_resources
from cli.errors import UsageError
from tests.support.messages import naming

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
max_uncertainty: 200ms
max_delay: 1s
---
"""


def test_read_resources_puts_streams_first(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(_YAML)
    stream = {"topic": "acoustic", "max_uncertainty": "200ms", "max_delay": "1s"}
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


def test_read_resources_puts_templates_before_the_streams_that_name_them(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(
        _YAML + "{kind: stream, name: seismic, templates: [t, u]}\n---\n"
        "{kind: template, name: t, buckets: [[0s, 20ms, 1]]}\n"
    )
    read = read_resources([file])
    assert [(it.kind, it.name) for it in read] == [
        ("template", "t"),
        ("stream", "acoustic"),
        ("stream", "seismic"),
        ("condition", "near"),
    ]
    assert read[0].document == {"buckets": [["0s", "20ms", 1]]}
    assert read[0].kind == "template"
    assert [it.needs for it in read] == [
        set(),
        set(),
        {("template", "t"), ("template", "u")},
        {("stream", "acoustic"), ("stream", "seismic")},
    ]


def test_read_resources_takes_json_and_several_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text('{"kind": "stream", "name": "a", "topic": "x"}')
    second.write_text('{"kind": "stream", "name": "b", "topic": "y"}')
    assert [found.name for found in read_resources([first, second])] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a: b\n", ["document 1: name", "missing"]),
        ("name: a\n", ["document 1: kind", "missing"]),
        ("name: [a]\nkind: stream\n", ["document 1: name", "missing"]),
        ("- a\n", ["document 1", "mapping"]),
        ("a: 1\n}", ["yaml, line 2", "YAML or JSON"]),
        ("\0", ["neither YAML nor JSON"]),
        ("name: a\n\tkind: stream\n", ["yaml, line 2", "a tab", "spaces"]),
        ("name:\ta\n", ["yaml, line 1", "a tab", "spaces"]),
        ("kind: stream\nname: a\nkind: within\n", ["line 3", "key kind is repeated"]),
        ("name: a\nkind: k\nmapping:\n  x: 1\n  x: 2\n", ["line 5", "key x is repeated"]),
        ('{"kind": "stream", "name": "a", "name": "b"}', ["line 1", "key name is repeated"]),
        ("name: a\nkind: stream\n---\nname: a\nkind: stream\n", ["stream a", "2 times"]),
        ("name: a\nkind: x\n---\nname: a\nkind: y\n", ["condition a", "2 times"]),
        ("name: 12\nkind: x\n", ["document 1: name", "string", "12 is a number", "quotes"]),
        ("name: true\nkind: x\n", ["document 1: name", "string", "true is a boolean", "quotes"]),
        ("name: 1e3\nkind: x\n", ["document 1: name", "string", "1E+3 is a number", "quotes"]),
        ("name: 2026-01-01\nkind: x\n", ["document 1: name", "string", "2026-01-01 is a date"]),
        (
            "name: a\nkind: x\nthreshold: 2026-01-01\n",
            ["document 1: threshold", "2026-01-01 is a date", "JSON"],
        ),
        ("name: a\nkind: x\nm: !!binary aGk=\n", ["document 1: m", "bytes"]),
        ("name: a\nkind: x\nm: !!set {b}\n", ["document 1: m", "a set"]),
        ("name: a\nkind: x\n7: b\n", ["key 7", "string"]),
        ("[" * 9999, ["nested too deeply"]),
        ("name: a\nkind: x\nm: &m [*m]\n", ["deeper than 80 levels"]),
        ('name: a\nkind: x\nm: "\\ud800"\n', ["document 1: m", "surrogate"]),
        ("", ["no document"]),
        ("---\n---\n", ["no document"]),
    ],
)
def test_read_resources_says_what_is_wrong(tmp_path: Path, text: str, names: list[str]) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=naming(*names)):
        read_resources([file])


def test_a_key_may_stand_beside_the_same_one_that_is_merged(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text("name: a\nkind: x\nm: {<<: {b: 1, c: 2}, b: 3}\n")
    assert read_resources([file])[0].document["m"] == {"b": 3, "c": 2}


def test_read_resources_says_so_when_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_resources([tmp_path / "gone.yaml"])


def test_place_names_file_document_and_line(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(f"# Comment\n---\n{_YAML}{{kind: template, name: t}}\n")
    places = {found.name: found.place for found in read_resources([file])}
    assert places == {
        "near": f"{file}, document 1 (line 3)",
        "acoustic": f"{file}, document 2 (line 11)",
        "t": f"{file}, document 3 (line 17)",
    }


def test_read_resources_takes_a_configuration_and_pauses(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    stream = {"kind": "stream", "name": "s", "topic": "t"}
    condition = {"kind": "within", "name": "c", "paused": True, "a": "s"}
    file.write_text(json.dumps({"resources": [condition, stream]}))
    read = read_resources([file])
    assert read == [
        ResourceFile("stream", "s", {"topic": "t"}),
        ResourceFile("condition", "c", {"kind": "within", "a": "s"}, paused=True),
    ]
    assert [it.to_document() for it in read] == [stream, condition]
    assert read[1].place == f"{file}, document 1, resource 1 (line 1)"
    file.write_text('{"resources": {}}')
    with pytest.raises(UsageError, match=naming(file, "document 1", "resources", "list")):
        read_resources([file])
