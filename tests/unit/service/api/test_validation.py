"""Rates of a request that checks a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from service.api.validation import ValidationRequest, validate_condition
from service.registry import Registry

if TYPE_CHECKING:
    from service.plane import ControlPlane

TOPK = {"kind": "topk_similarity", "a": "alerts", "k": 5, "window": "1h"}


class NoStreams:
    """A plane that refuses every condition."""

    registry = Registry(10**9)

    def derive(self, *_: object) -> None:
        raise InvalidFieldError("a", "is unknown", "register it")


@pytest.mark.parametrize("condition", [TOPK, {**TOPK, "b": None}, {**TOPK, "b": "others"}])
def test_rate_of_a_stream_that_the_condition_does_not_read_is_a_problem(
    condition: dict[str, Any],
) -> None:
    rates = {name: 2.0 for name in ("alerts", condition.get("b"), "nope") if name}
    body = ValidationRequest(condition=condition, rates=rates)
    answer = validate_condition(body, cast("ControlPlane", NoStreams()))
    assert [it.field for it in answer.errors] == ["a", "rates.nope"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_document_of_a_kind_without_its_fields_is_checked(kind: str) -> None:
    body = ValidationRequest(condition={"kind": kind}, rates={"nope": 2.0})
    answer = validate_condition(body, cast("ControlPlane", NoStreams()))
    assert not answer.valid
    assert answer.errors
