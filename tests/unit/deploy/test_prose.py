"""Code and documents do not contain the words and phrases for which there are plainer terms.

Python files: comments, docstrings and string constants are searched. Tests: comments and docstrings
only, because their strings are also input. Scripts of the console: comments and strings. Documents
and pages of the console: all text.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "correlation",
    "coincide",
    "kafka_client",
    "service",
    "spark_jobs",
    "cli",
    "deploy",
    "benchmarks",
)
DOCUMENTS = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"),
    *("tests/unit/deploy/alerts_test.yml", "service/console/console.css", "cli/stack/ivy.xml"),
    *("Makefile", "Dockerfile", "pyproject.toml", ".ci/run", ".pre-commit-config.yaml"),
    *("deploy/alerts.yml", "deploy/compose.yaml", "deploy/prometheus.yml"),
    *("deploy/recording_rules.yml", "deploy/kubernetes/monitoring/rules.yaml"),
    *(f"deploy/kubernetes/settings/{name}.env" for name in ("both", "job", "service")),
    *("deploy/kustomization.yaml", "deploy/kubernetes/kustomization.yaml"),
    *("deploy/kubernetes/service.yaml", "deploy/kubernetes/job.yaml"),
    *("deploy/kubernetes/network.yaml", "deploy/kubernetes/monitoring/kustomization.yaml"),
    "deploy/kubernetes/monitoring/service_monitor.yaml",
    "deploy/grafana/provisioning/datasources/prometheus.yml",
    "deploy/grafana/provisioning/dashboards/coincide.yml",
)
# The first words of docstrings. Python projects use Return, Compute, Check, Raise, ...
FIRST_WORD = re.compile(r"(?:Give|Say|Tell)s?\b")
# Phrases by the words to use instead.
BANNED = {
    "is not, does not exist, must be": r"(?:is|are|was|were) no(?! longer)",
    "does not exist, is missing": r"there (?:is|are) (?-i:none)",
    "is missing, is not": r"(?:is|are) (?-i:none)",
    "a noun": r"what is (?:no|none|not)",
    "string": r"a text(?! file)",
    "is, exists, represents": r"stands?",
    "number of, the number": r"so many",
    "max": r"greatest(?! common)",
    # "least recently used" and "least common multiple" are terms.
    "min": r"(?<!at\s)(?<!at\n\x20\x20)least(?! (?:recently|common|squares))",
    "shows, reports, distinguishes": r"told",
    "even if, including": r"also (?:if|not)",
    # "less than", "less often" and "less memory" compare.
    "minus": r"less (?:the|its|their|an?|\d|\w+_\w)|one \w+ less(?! than)",
    "is a smaller part": r"matters? less",
    "the noun": r"that which",
    "not, no caller, no user": r"nobody",
    "future, has not arrived": r"(?:still|yet) to come",
    "again, without state": r"anew",
    "a user, a person, everyone": r"anybody|somebody",
    "must, is to": r"shall",
    "declares, guarantees": r"promis(?:e[sd]?|ing)",
}
PHRASES = [
    # A phrase may be broken over two lines.
    (re.compile(rf"\b(?:{phrase})\b".replace(" ", r"\s+"), re.IGNORECASE), use)
    for use, phrase in BANNED.items()
]
# Clauses at the begin of a sentence, in place of a subject that is a noun, and the inverted order.
_SENTENCE = r"(?:\A\s*|[.!?]\s+)"
CLAUSES = {
    # Except questions, and "What to do:".
    "a noun as subject": (
        r"((?-i:What|Whoever|Whatever|Who|That of)\s\w+\s(?!do:)[^.!:?]*)(?=[.!:,;]|\Z)"
    ),
    "the noun that depends": (
        r"((?:Which|Whether|How|Why)\b[^.,:?|]{2,90}?\s(?:depends|follows|matters))\b"
    ),
    "the subject first": r"((?:Which|What|Where|How|Why)\b[^.?!:|]{2,80},\s(?:says|shows|tells))\b",
}
PHRASES += [(re.compile(_SENTENCE + it, re.IGNORECASE), use) for use, it in CLAUSES.items()]
# Proofs use "least" and "greatest" as terms of mathematics.
ORDER_TERMS = {("docs/proofs.md", "min"), ("docs/proofs.md", "max")}


# Comments and strings of a script. Comments on consecutive lines are one text. A regular expression
# with a quotation mark would be read as the begin of a string: the console has none.
SCRIPT_TEXT = re.compile(
    r"""(?P<comment>//[^\n]*(?:\n[ ]*//[^\n]*)*|/\*.*?\*/)"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""",
    re.DOTALL,
)


class Text(NamedTuple):
    """A comment, a docstring, another string, or a document."""

    place: str
    content: str
    kind: str = "text"


def test_packages_use_plain_words() -> None:
    found = [text for package in PACKAGES for text in texts_of(ROOT / package)]
    assert len(found) > 1000
    assert_plain(found)


def test_docstrings_and_comments_of_tests_use_plain_words() -> None:
    found = [text for text in texts_of(ROOT / "tests") if text.kind != "string"]
    assert len(found) > 1000
    assert_plain(found)


def test_documents_use_plain_words() -> None:
    docs = ROOT / "docs"
    pages = [*sorted(docs.rglob("*.md")), *sorted((docs / "images").glob("*.svg"))]
    paths = [*(ROOT / name for name in DOCUMENTS), *pages]
    found = [
        Text(f"{path.relative_to(ROOT)}:1", path.read_text(encoding="utf-8")) for path in paths
    ]
    assert len(found) > 10
    assert_plain(found)


def test_console_uses_plain_words() -> None:
    console = ROOT / "service" / "console"
    pages = [
        Text(f"{path.relative_to(ROOT)}:1", path.read_text(encoding="utf-8"))
        for path in sorted(console.rglob("*.html"))
    ]
    found = [
        text
        for path in sorted(console.rglob("*.js"))
        for text in read_script(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    ]
    assert pages
    assert len(found) > 100
    assert_plain([*pages, *found])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("// It is\n// no name.", ["x.js:1: is no"]),
        ("/* One.\n * It is no name. */", ["x.js:2: is no"]),
        ("const greatest = 'a'; // told", ["x.js:1: told"]),
        ('say("it\'s told", 1);', ["x.js:1: told"]),
        ("say('a', 'is no name');", ["x.js:1: is no"]),
        ("say(`${count} is\n no name`);", ["x.js:1: is no"]),
        ("// One.\nconst told = 'http://one';", []),
    ],
)
def test_search_reads_comments_and_strings_of_scripts(source: str, found: list[str]) -> None:
    assert [it.partition(" (")[0] for it in problems(read_script("x.js", source))] == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""Give a sum."""', ["x.py:1: Give"]),
        ('"""\nSays a word."""', ["x.py:1: Says"]),
        ('"""Tell it."""', ["x.py:1: Tell"]),
        ('x = "here is " "no name"', ["x.py:1: is no"]),
        ('x = (\n    "there is"\n    "no name"\n)', ["x.py:2: is no"]),
        ("# It is\n# no name.", ["x.py:1: is no"]),
        ("x = 1  # It is\n\n# no name.", []),
        ('x = "is no name"', ["x.py:1: is no"]),
        ('x = "is no longer"', []),
        ('x = (\n    "a"\n    "b is no"\n    " name"\n)', ["x.py:3: is no"]),
        ("x = 1  # Told so.", ["x.py:1: Told"]),
        ('"""One.\n\nThis stands here, at least."""', ["x.py:3: stands"]),
        ('"""One is\nno name."""', ["x.py:1: is no"]),
        ("greatest = 1", []),
        ("# Sent also\n# if it is late.", ["x.py:1: also if"]),
        ("# The end less the delay.", ["x.py:1: less the"]),
        ("# One event less.", ["x.py:1: One event less"]),
        ("# It needs less memory, less often, and is less than a tenth.", []),
        (
            "# It is late.\n# What is late goes to the topic.",
            ["x.py:2: What is late goes to the topic"],
        ),
        ('"""Who sends a request."""', ["x.py:1: Who sends a request"]),
        ("# What is late? What to do: see below.", []),
        ('x = "what it does"', []),
        (
            "# Which of them is late depends on the clock.",
            ["x.py:1: Which of them is late depends"],
        ),
        ("# How often, says `x`.", ["x.py:1: How often, says"]),
    ],
)
def test_search_finds_phrases_with_their_line(source: str, found: list[str]) -> None:
    assert [it.partition(" (")[0] for it in problems(read_texts("x.py", source))] == found


def assert_plain(texts: Iterable[Text]) -> None:
    """Fail with all banned phrases, one a line."""
    found = problems(texts)
    assert not found, "\n".join(["", *found])


def problems(texts: Iterable[Text]) -> list[str]:
    """Return `file:line: phrase (use: plain words)` for each banned phrase."""
    found = []
    for place, content, kind in texts:
        path, _, line = place.rpartition(":")
        if kind == "docstring" and (match := FIRST_WORD.match(content.lstrip())):
            found.append(f"{place}: {match[0]} (use: Return, Compute, Check, ...)")
        for phrase, use in PHRASES:
            for match in () if (path, use) in ORDER_TERMS else phrase.finditer(content):
                begin = match.start(match.re.groups)
                at = int(line) + content.count("\n", 0, begin)
                words = " ".join(match[match.re.groups].split())
                found.append(f"{path}:{at}: {words} (use: {use})")
    return found


def texts_of(folder: Path) -> Iterator[Text]:
    """Yield the texts of the Python files in a folder, except this file: it lists the phrases."""
    for path in sorted(folder.rglob("*.py")):
        if path != Path(__file__):
            name = str(path.relative_to(ROOT))
            yield from read_texts(name, path.read_text(encoding="utf-8"))


def read_texts(name: str, source: str) -> Iterator[Text]:
    """Yield the comments, docstrings and other strings of a Python file.

    Comments on consecutive lines are one text, and so are adjacent strings.
    """
    docstrings = {
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    for lines in grouped(comments, lambda one, other: other.start[0] == one.end[0] + 1):
        yield Text(f"{name}:{lines[0].start[0]}", "\n".join(it.string[1:] for it in lines))
    strings = [token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL)]
    both = {tokenize.STRING}
    for parts in grouped(strings, lambda one, other: {one.type, other.type} == both):
        if parts[0].type == tokenize.STRING:
            line = parts[0].start[0]
            content = parts[0].string.lstrip("rbfuRBFU").strip("\"'")
            for one, other in pairwise(parts):
                content += "\n" * (other.start[0] - one.end[0]) or " "
                content += other.string.lstrip("rbfuRBFU").strip("\"'")
            kind = "docstring" if line in docstrings else "string"
            yield Text(f"{name}:{line}", content, kind)


def read_script(name: str, source: str) -> Iterator[Text]:
    """Yield the comments and strings of a script."""
    for match in SCRIPT_TEXT.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        content = match[0]
        if match["comment"]:
            content = re.sub(r"^\s*(?://|/?\*)", " ", content, flags=re.MULTILINE)
        yield Text(f"{name}:{line}", content)


def grouped(
    tokens: Iterable[tokenize.TokenInfo],
    belong: Callable[[tokenize.TokenInfo, tokenize.TokenInfo], bool],
) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield lists of consecutive tokens of which each belongs to the one before it."""
    group: list[tokenize.TokenInfo] = []
    for token in tokens:
        if group and not belong(group[-1], token):
            yield group
            group = []
        group.append(token)
    if group:
        yield group
