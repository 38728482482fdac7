"""Problems of documents, for users: those of an answer, and those found without a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]


def describe_problems(problems: Sequence[Document]) -> str:
    """Return problems of fields as one sentence, followed by the lines of texts they refer to."""
    fields = [
        f"{it.get('field') or 'document'}: {it.get('problem')}: {it.get('remedy')}"
        for it in problems
    ]
    return "\n".join(["; ".join(fields), *excerpts_of(problems)])


def excerpts_of(problems: Iterable[Document]) -> list[str]:
    """Return the lines of texts that problems refer to, each with a caret below the place."""
    places = [it["place"] for it in problems if isinstance(it.get("place"), dict)]
    return [str(place.get("excerpt")) for place in places]
