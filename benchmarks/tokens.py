"""Cost of the tokens of a stream, beside a stream that declares none; see `attributes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.attributes import COLUMNS, Way, measure, rows_of
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

WORDS = 10
DICTIONARY = 50_000
# Exponent of the frequencies of words in natural language.
_ZIPF = 1.2
WAYS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "list": {"tokens": "words"},
    "words": {"tokens": {"path": "message", "tokenizer": "words"}},
    "split:,": {"tokens": {"path": "joined", "tokenizer": "split:,"}},
    r"split:\s+": {"tokens": {"path": "message", "tokenizer": r"split:\s+"}},
    "ngrams:3": {"tokens": {"path": "message", "tokenizer": "ngrams:3"}},
}
TEXT = (
    f"As the table above, with records that have {WORDS} words each: as a list, separated by "
    f"spaces, and separated by commas. The words are drawn from {DICTIONARY:,} with Zipf "
    f"frequencies (exponent {_ZIPF}), so some are repeated within a record. The last two columns "
    "are relative to a stream without tokens."
)


def draw_words(rng: np.random.Generator) -> dict[str, Any]:
    """Draw the fields of a record."""
    words = [f"word{min(it, DICTIONARY)}" for it in rng.zipf(_ZIPF, WORDS).tolist()]
    return {"words": words, "message": " ".join(words), "joined": ",".join(words)}


def run() -> list[Report]:
    """Measure all ways."""
    ways = [Way.of(name, declared) for name, declared in WAYS.items()]
    measure(ways, draw_words)
    return [Report("Streams with and without tokens", TEXT, COLUMNS, rows_of(ways))]


if __name__ == "__main__":
    for found in run():
        found.show()
