"""Samples are evaluated one after the other; tests/rest covers them on a real Kafka."""

from __future__ import annotations

import pytest

from correlation.condition_kind import Load
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.streams import Stream
from service.errors import NotReadyError
from service.sampling import Sampler, SampleRequest
from service.settings import Settings
from tests.support.messages import assert_names


def test_a_sample_waits_no_longer_than_its_limit_for_others() -> None:
    sampler = Sampler(Settings(explain_seconds=0.01))
    document = {**KINDS["mutual_deadline"].example, "window_us": 5}
    condition = condition_from_document("c", 1, document)
    streams = {it: Stream(it, it, 10, 10) for it in condition.streams}
    kind, asked = KINDS[condition.kind], SampleRequest({condition.streams[0]: [{}]}, 1)
    turn = sampler._turn  # noqa: SLF001 - as if another sample were evaluated
    with turn, pytest.raises(NotReadyError) as found:
        sampler.derive(kind, condition, streams, Load({}), asked)
    assert_names(found.value.problems[0].remedy, "try again")
    answer = sampler.derive(kind, condition, streams, Load({}), asked)
    assert answer.sample is not None
    assert answer.sample["streams"][condition.streams[0]]["rejected"] == {"missing_field": 1}
