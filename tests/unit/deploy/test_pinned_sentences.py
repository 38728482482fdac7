"""Tests assert codes, fields, names and values of messages, and do not compare their sentences.

A sentence is a string with five consecutive words, separated by single spaces. Strings are searched
that are compared (`==`, `in`), that `pytest.raises` matches, and that are arguments of CALLS: also
those of tables, constants and calls of helpers that are compared through a name.
"""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.name_values import NameValues, called, children

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[2]
_WORD = r"(?:[A-Za-z][a-z']+|a)"
SENTENCE = re.compile(rf"(?<![\w./-])(?:{_WORD}[,;:.]? ){{4}}{_WORD}(?!\w)")
CALLS = {
    *("startswith", "endswith", "search", "fullmatch", "assert_names", "naming"),
    *("get_by_text", "to_contain_text", "to_have_text"),
}
# Files whose sentences are their subject, with the number of these sentences.
PLANS = "The sentences are the content of a plan."
PAGES = "The text is that of a page of docs/, which is generated or compared with code."
KEPT = {
    "unit/cli/client/test_explain.py": (1, "The layout of a shown explanation is the subject."),
    "unit/cli/client/test_plan.py": (3, PLANS),
    "unit/correlation/event_query/relevance/test_describe.py": (19, PLANS),
    "unit/correlation/event_query/test_stated_times.py": (4, PLANS),
    "unit/correlation/topk/test_plan.py": (9, PLANS),
    "unit/deploy/test_factored_document.py": (1, PAGES),
    "unit/deploy/test_site.py": (6, PAGES),
    "unit/deploy/test_prose.py": (6, "They are the phrases that are searched in the prose."),
    "unit/service/api/test_wording.py": (
        38,
        "How problems and remedies are worded is the subject.",
    ),
}


def test_sentences_are_compared_only_where_they_are_the_subject() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(set(TESTS.rglob("*.py")) - {Path(__file__)}):
        name = path.relative_to(TESTS).as_posix()
        for line, text in pinned(path.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(f"{name}:{line}: {text}")
    wrong = {
        name: sentences
        for name in sorted(found.keys() | KEPT)
        if len(sentences := found.get(name, [])) != KEPT.get(name, (0, ""))[0]
    }
    assert not wrong, "\n".join(["", *wrong, *chain.from_iterable(wrong.values())])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("assert x == 'the window must be positive'", 1),
        ("assert x == {'a': ['the window ' 'must be positive']}", 1),
        ("assert x == f'the window {y} must be above all others'", 1),
        ("assert x.startswith('the window must be positive')", 1),
        ("raises(E, match='^the window must be positive')", 1),
        ("assert_names(x, 'the window must be positive')", 1),
        ("assert x == 'window: must be at least 1 µs; got 0 µs'", 1),
        # Parts of sentences, lines of a table, patterns; strings that are not compared.
        ("assert x == 'window: at least 1 µs; got 0 µs'", 0),
        ("assert x == 'place  similarity  older  newer  time  key'", 0),
        ("raises(E, match='the window .*must be positive')", 0),
        ("x = 'the window must be positive'", 0),
        ("assert f('the window must be positive') == 3", 0),
    ],
)
def test_search_finds_sentences(source: str, found: int) -> None:
    assert len(list(pinned(source))) == found


# S is a sentence. The arguments of f are inputs of the tested code.
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("X = S\ndef test(): assert f() == X", 1),
        ("X = S\ndef test(): assert f() == f'{X} in the cell'", 1),
        ("X = S\ndef test(): assert f() == X.format(3)", 1),
        ("X = S\ndef test(): assert f() == [Problem('x', X)]", 1),
        ("X = S\ndef test(): raises(E, match=re.escape(X))", 1),
        ("X = S\ndef test(): assert f(X) == 3", 0),
        ("X = S\ndef test():\n X = 3\n assert f() == X", 0),
        ("@parametrize(('x', 'y'), [(1, S)])\ndef test(x, y): assert f(x) == y", 1),
        ("@parametrize(('x', 'y'), [(1, S)])\ndef test(x, y): assert f(y) == x", 0),
        ("@parametrize(('x', 'y'), [param(1, {'a': [S]})])\ndef test(x, y): assert y == f(x)", 1),
        ("@parametrize('y', [*((it, S) for it in X)])\ndef test(y): assert f() == y", 1),
        ("X = [(1, S)]\n@parametrize(('x', 'y'), X)\ndef test(x, y): assert f(x) == y", 1),
        ("X = {S: 1}\n@parametrize(('x', 'y'), X.items())\ndef test(x, y): assert f(y) == x", 1),
        ("@parametrize('y', [{1: S}])\ndef test(y):\n for a, b in y.items(): assert f(a) == b", 1),
        ("def test():\n for x, y in ((1, S),): assert f(x) == y", 1),
        ("def test():\n for x, y in zip(f(), [S]): assert x.startswith(y)", 1),
        ("def test():\n for x, y in zip([S], f()): assert g(x).startswith(y)", 0),
        ("def check(x, y): assert f(x) == y\ndef test(): check(1, S)", 1),
        ("def check(x, y): assert f(x) == y\ndef test(): check(S, y=1)", 0),
    ],
)
def test_search_follows_names(source: str, found: int) -> None:
    source = source.replace("S", "'the window must be positive'")
    assert len(list(pinned(source))) == found


def pinned(source: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that a test compares, with their lines."""
    found = set()
    values = NameValues(ast.parse(source))
    for scope, node in values.nodes:
        if isinstance(node, ast.Compare):
            compared: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            compared = [it.value for it in node.keywords if it.arg == "match"]
            compared += node.args if called(node) in CALLS else []
        else:
            continue
        for it in compared:
            for part in values.parts(scope, it):
                found |= {text for text in strings(part) if SENTENCE.search(text[1])}
    yield from sorted(found)


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of an expression, except the arguments of functions that it calls."""
    if isinstance(node, ast.JoinedStr):
        parts = (it.value if isinstance(it, ast.Constant) else "{}" for it in node.values)
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    else:
        for child in children(node):
            yield from strings(child)
