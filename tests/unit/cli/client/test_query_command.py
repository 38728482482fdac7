"""`coincide query check`: places for an editor, exit codes for CI."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.main import app
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from tests.support.messages import assert_names
from tests.unit.correlation.event_query.language.test_parser import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


def _check(content: str | bytes, *options: str) -> Result:
    return CliRunner().invoke(app, ["query", "check", "-", *options], input=content)


def test_valid_query_is_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "smoke.query"
    # Editors on Windows write a byte order mark.
    file.write_text(EXAMPLE, encoding="utf-8-sig")
    done = CliRunner().invoke(app, ["query", "check", str(file)])
    assert done.exit_code == 0
    assert done.output.startswith(
        f"{file}: valid; Alarm from 1 positive event and 1 negated event\n"
    )


def test_problems_have_places_and_carets() -> None:
    done = _check("DETECT A {a {var X}}\nON event s: T\nWHERE t.rt.end < s.rt.end END")
    assert done.exit_code == 1
    lines = done.output.splitlines()
    variable, alias = lines.pop(0), lines.pop(2)
    assert variable.startswith('<stdin>:1:18: error: variable "X" ')
    assert_names(variable, "add {var X}")
    assert alias.startswith("<stdin>:3:7: error: ")
    assert_names(alias, 'alias "t"', "use s")
    assert lines == [
        "DETECT A {a {var X}}",
        "                 ^",
        "WHERE t.rt.end < s.rt.end END",
        "      ^",
    ]


def test_json_is_the_query() -> None:
    done = _check(EXAMPLE, "--json")
    assert done.exit_code == 0
    assert query_from_document(json.loads(done.stdout)) == parse_query(EXAMPLE)


def test_json_is_the_errors() -> None:
    done = _check("DETECT A ON event s: T stop", "--json")
    assert done.exit_code == 1
    assert json.loads(done.output) == {
        "errors": [
            {
                "file": "<stdin>",
                "line": 1,
                "column": 24,
                "problem": 'found "stop"',
                "remedy": 'expected "{", "event", "not event", WHERE or END',
                "found": '"stop"',
                "expected": ['"{"', '"event"', '"not event"', "WHERE", "END"],
                "excerpt": "DETECT A ON event s: T stop\n                       ^",
            }
        ]
    }


@pytest.mark.parametrize(
    ("content", "place", "names"),
    [
        (
            b"\xef\xbb\xbfDETECT \xff",
            "1:8",
            ["byte 0xff", "UTF-8"],
        ),
        (b"\xf0\x9d\x84\x9e" * 1_000_000, "1:65537", ["at most 65,536"]),
        (b"", "1:1", ["end of the text", "DETECT\n\n^"]),
        (b"\x1b[2J", "1:1", [r'"\u001b"', "DETECT\n\ufffd[2J\n^"]),
    ],
)
def test_any_bytes_are_refused_with_a_place(content: bytes, place: str, names: list[str]) -> None:
    done = _check(content)
    assert done.exit_code == 1
    assert done.output.startswith(f"<stdin>:{place}: error: ")
    assert_names(done.output, *names)


def test_json_of_one_mebibyte_is_read_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    content = json.dumps(query_to_document(parse_query(EXAMPLE)))
    file = tmp_path / "smoke.query"
    file.write_text(content.ljust(2**20))
    assert CliRunner().invoke(app, ["query", "check", str(file)]).exit_code == 0
    file.write_text(content.ljust(2**20 + 1))
    for done in (
        CliRunner().invoke(app, ["query", "check", str(file), "--json"]),
        _check(file.read_bytes(), "--json"),
    ):
        assert done.exit_code == 1
        (error,) = json.loads(done.stdout)["errors"]
        assert_names(error["problem"], "1 MiB")


def test_missing_file_is_wrong_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["query", "check", str(tmp_path / "none")])
    assert done.exception is not None
    assert_names(done.exception, tmp_path / "none", os.strerror(errno.ENOENT))


def test_unbounded_query_is_refused_with_its_place() -> None:
    done = _check("DETECT A ON event s: Smoke\nnot event r: Report END")
    assert done.exit_code == 1
    first = done.output.splitlines()[0]
    assert first.startswith("<stdin>:2:11: error: event r of stream report ")
    assert_names(first, "add `s.rt.begin <= r.rt.end + C`")
    assert done.output.splitlines()[1:3] == ["not event r: Report END", "          ^"]


def test_a_result_that_ends_before_it_begins_on_all_streams_is_refused_with_its_place() -> None:
    done = _check("DETECT A ON event s: Smoke\nWHERE A.rt.begin = s.rt.end + 1 s END")
    assert done.exit_code == 1
    first = done.output.splitlines()[0]
    assert first.startswith("<stdin>:2:7: error: a result A ends ")
    assert_names(first, "begin is s.rt.end + 1 s", "end is s.rt.end")
    # Events may be shorter than an hour, or longer.
    done = _check("DETECT A ON event s: Smoke\nWHERE A.rt.end = s.rt.begin + 1 h END")
    assert done.exit_code == 0
    assert_names(done.output, "event s of stream smoke", "at any time")


def test_a_query_whose_bounds_depend_on_the_declaration_is_valid_with_a_note() -> None:
    text = """DETECT A ON event s: Smoke not event r: Report
WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min END"""
    done = _check(text)
    assert done.exit_code == 0
    first, note, *_ = done.output.splitlines()
    assert first.startswith("<stdin>: valid; ")
    label, problem = note.split(": event r of ")
    assert label.startswith("<stdin>:1:38: refused if ")
    assert_names(label, "events last", "no max_length")
    assert problem.endswith("max_length of stream report")
    assert_names(problem, "add `r.rt.end <= s.rt.end + C`")
    # The output as JSON is the query alone.
    assert json.loads(_check(text, "--json").stdout)["detect"]["type"] == "A"


def test_json_form_is_checked_and_its_errors_have_paths() -> None:
    written = _check(EXAMPLE, "--json").stdout
    first, note = _check(written).output.splitlines()
    assert first == _check(EXAMPLE).output.splitlines()[0]
    assert note.startswith("<stdin>:events[1]: refused if ")
    assert _check(written, "--json").stdout == written
    wrong = written.replace('"negated":true', '"negated":"yes"')
    assert _check(wrong).output.startswith("<stdin>:events[1].negated: error: must be true ")
    (error,) = json.loads(_check(wrong, "--json").stdout)["errors"]
    assert error["path"] == "events[1].negated"
    broken = _check(written[:-3])
    assert broken.exit_code == 1
    assert broken.output.startswith("<stdin>:1:")
    assert "is not JSON" in broken.output
    for text in ("{" * 9, '{"a":' * 100_000, '{"a":' + "1" * 5_000 + "}"):
        assert "is not JSON" in _check(text).output


def test_several_files_are_checked(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(EXAMPLE, encoding="utf-8")
    bad.write_text("DETECT", encoding="utf-8")
    done = CliRunner().invoke(app, ["query", "check", str(bad), str(good)])
    assert done.exit_code == 1
    assert f"{bad}:1:7: error:" in done.output
    assert f"{good}: valid;" in done.output
