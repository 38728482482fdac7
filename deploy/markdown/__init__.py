"""Markdown of the generated pages: code spans, escaped text, tables. Not installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = re.compile(r"([\\*_<>\[\]|])")


def code(text: str) -> str:
    """Return a code span for a cell of a table."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def plain(text: str) -> str:
    """Escape a description, except its code spans, for a cell of a table."""
    parts = " ".join(text.split()).split("`")
    for place in range(0, len(parts), 2):
        parts[place] = _SPECIAL.sub(r"\\\1", parts[place])
    return "`".join(parts)


def table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table, or none if it would be empty."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return []
    return [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|", *lines, ""]
