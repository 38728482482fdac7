"""Explanations: what the service passes to a kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from correlation.explaining import GivenRecord
from correlation.kinds import KINDS
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from service import explaining
from service.explaining import Asked, Explainer
from service.fold import Stored
from service.lookup import Finding, RecordFinder, Span
from service.settings import Settings

STREAM = Stream("s", "s", max_uncertainty_us=0, max_delay_us=0)
DOCUMENT = {"kind": "topk_similarity", "a": "s", "k": 1, "window_us": 1}
RECORD = GivenRecord({"id": "c"})


@pytest.mark.parametrize("found", [None, {"b": [RECORD]}])
def test_kind_with_lists_may_search_records_too(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, list[GivenRecord]] | None
) -> None:
    kind = KINDS["topk_similarity"]
    seen: dict[str, Any] = {}

    def explain(*_: object, **more: object) -> dict[str, Any]:
        seen.update(more)
        return {"verdict": "satisfied", "explanation": "", "notes": []}

    def search(*_: object) -> dict[str, Any]:
        return {} if found is None else {"b": lambda _record: True}

    def find(*_: object) -> dict[str, Finding]:
        return {"b": Finding(records=[RECORD])}

    both = replace(kind, explain=explain, search=search)
    monkeypatch.setattr(explaining, "KINDS", {**KINDS, kind.name: both})
    monkeypatch.setattr(RecordFinder, "find", find)
    stored = Stored(Resource("condition", "c", 1, 0, DOCUMENT), 0)
    records = {role: {"id": role, "time": 1, "tags": ["x"]} for role in "ab"}

    def find_list(_key: object) -> None:
        return None

    Explainer(Settings()).explain(stored, {"s": STREAM}, Asked(records), Span(), find_list)
    assert seen == {"find_list": find_list} | ({} if found is None else {"found": found})
