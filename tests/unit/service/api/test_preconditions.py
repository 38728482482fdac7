"""If-Match and If-None-Match (RFC 9110, section 13.1) as tables."""

from __future__ import annotations

import pytest

from correlation.resources.records import Resource
from service.api.common import make_precondition
from service.errors import PreconditionError
from service.fold import Stored

AT_17 = Stored(Resource("stream", "x", 1, 0, {}), 17)


@pytest.mark.parametrize(
    ("if_match", "if_none_match", "current", "holds"),
    [
        (None, None, None, True),
        (None, None, AT_17, True),
        ('"17"', None, AT_17, True),
        ('"1", "17"', None, AT_17, True),
        ('"16"', None, AT_17, False),
        ('W/"17"', None, AT_17, False),
        ("17", None, AT_17, False),
        ("", None, AT_17, False),
        ('"17"', None, None, False),
        ("*", None, AT_17, True),
        (" * ", None, None, False),
        (None, "*", None, True),
        (None, "*", AT_17, False),
        (None, '"17"', AT_17, False),
        (None, '"16"', AT_17, True),
        ('"17"', '"17"', AT_17, False),
    ],
)
def test_precondition_holds_only_for_the_state_it_names(
    if_match: str | None,
    if_none_match: str | None,
    current: Stored | None,
    holds: bool,  # noqa: FBT001  a column of the table
) -> None:
    check = make_precondition(if_match, if_none_match)
    if holds:
        check(current)
        return
    with pytest.raises(PreconditionError, match="ETag"):
        check(current)
