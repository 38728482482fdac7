"""What is wrong with a document, in plain words: pydantic's errors and near names."""

from collections.abc import Iterable
from difflib import SequenceMatcher


def by_nearness(name: str, known: Iterable[str]) -> list[str]:
    """Sort known names by how near they are to one that was written, the nearest first."""
    return sorted(known, key=lambda it: (-_nearness(name, it), it))


def _nearness(name: str, known: str) -> float:
    return SequenceMatcher(None, name.lower().replace("-", "_"), known).ratio()
