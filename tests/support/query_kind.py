"""The kind of condition `event_query`, as far as a program needs it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import correlation.engine.registered
import correlation.kinds
from correlation.condition_kind import ConditionKind, Field
from correlation.event_query.condition import KIND, EventQueryCondition
from correlation.event_query.evaluation.operator import METRICS, make_operator
from correlation.event_query.language.document_reader import query_from_document
from correlation.kinds import KINDS


def _build(name: str, version: int, values: Mapping[str, Any]) -> EventQueryCondition:
    query = query_from_document(values["query"])
    return EventQueryCondition(name, version, query, values["types"])


def _check(_condition: object, _streams: object) -> None:
    """Accept every query."""


def _nothing(*_args: object) -> dict[str, Any]:
    return {}


def register() -> None:
    """Register the kind, if no package has registered it."""
    if KIND in KINDS:
        return
    kind = ConditionKind(
        name=KIND,
        summary="",
        fields=(Field("query", "topic", ""), Field("types", "topic", "")),
        build=_build,
        check=_check,
        operator=make_operator,
        derive=_nothing,
        horizon_field=lambda _condition, _stream: "query",
        plan=_nothing,
        roles=_nothing,
        explain=_nothing,
        example={},
        metrics=METRICS,
    )
    kinds = MappingProxyType({**KINDS, KIND: kind})
    for module in (correlation.kinds, correlation.engine.registered):
        module.KINDS = kinds  # type: ignore[attr-defined]
