"""Lines for a person: numbers with singular and plural nouns, and JSON in a terminal."""

from __future__ import annotations

import io
import json

import orjson
import pytest

from cli.client.lines import counted, write_json_line


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_345, "12,345 rows")],
)
def test_counted_takes_the_plural_unless_it_is_one(number: int, said: str) -> None:
    assert counted(number, "row") == said


class _Output(io.TextIOWrapper):
    """Standard output that is a terminal, or a pipe."""

    def __init__(self, *, is_terminal: bool) -> None:
        self.content = io.BytesIO()
        super().__init__(self.content, encoding="utf-8")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢 😀", "plain é 漢 😀"),
        ('"\\', r"\"\\"),
        ("\x1b[2J\n", r"\u001b[2J\n"),
        ("\x7f\x80\x9b\x9f", r"\u007f\u0080\u009b\u009f"),
        (
            "\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
            r"\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
        ),
        ("\u2028\U000e0041", r"\u2028\udb40\udc41"),
    ],
)
def test_json_line_has_no_control_characters_in_a_terminal(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {}
    for is_terminal in (True, False):
        output = _Output(is_terminal=is_terminal)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", output)
            write_json_line({text: [text]})
        written[is_terminal] = output.content.getvalue()
    assert written[True].decode() == f'{{"{shown}":["{shown}"]}}\n'
    assert written[False] == orjson.dumps({text: [text]}) + b"\n"
    assert json.loads(written[True]) == {text: [text]}
