"""The registered number of slots of the job: the record `job/slots` of the config topic.

It is not part of a configuration: a configuration describes results, which do not depend on the
number of slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from correlation.errors import InvalidFieldError
from correlation.limits import SLOTS_LIMIT

# Kind and name of the resource.
JOB: Final = "job"
SLOTS: Final = "slots"


def read_slots(document: Mapping[str, Any]) -> int:
    """Return the number of slots of a document.

    Raises
    ------
    InvalidFieldError
        When it is missing or not valid.
    """
    found = document.get(SLOTS)
    if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= SLOTS_LIMIT:
        return found
    raise InvalidFieldError(
        SLOTS,
        f"must be a whole number from 1 to {SLOTS_LIMIT}",
        "use the max number of cores of the job",
    )
