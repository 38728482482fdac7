"""The registered number of slots of the job."""

from __future__ import annotations

import json

import pytest

from correlation.config_records import parse_config_record
from correlation.errors import InvalidFieldError, UnreadableRecordError
from correlation.limits import SLOTS_LIMIT
from correlation.resources.job_slots import read_slots
from correlation.resources.records import Resource


@pytest.mark.parametrize("slots", [1, 7, SLOTS_LIMIT])
def test_number_of_slots_comes_back_from_its_record(slots: int) -> None:
    resource = Resource("job", "slots", 3, 17, {"slots": slots})
    value = json.dumps(resource.to_record()).encode()
    found = parse_config_record(b"job/slots", value, json.loads)
    assert found == resource
    assert found.to_slots() == slots


@pytest.mark.parametrize("slots", [0, -1, SLOTS_LIMIT + 1, True, 2.0, "2", None, [2]])
def test_number_that_is_not_valid_is_refused(slots: object) -> None:
    with pytest.raises(InvalidFieldError, match=f"from 1 to {SLOTS_LIMIT}") as caught:
        read_slots({"slots": slots})
    assert caught.value.field == "slots"
    value = json.dumps(Resource("job", "slots", 1, 0, {"slots": slots}).to_record()).encode()
    with pytest.raises(UnreadableRecordError, match="not a job"):
        parse_config_record(b"job/slots", value, json.loads)


def test_job_has_no_other_record() -> None:
    value = json.dumps(Resource("job", "cores", 1, 0, {"slots": 2}).to_record()).encode()
    with pytest.raises(UnreadableRecordError, match="or job/slots"):
        parse_config_record(b"job/cores", value, json.loads)
