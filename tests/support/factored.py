"""Alarms of factored records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from correlation.timing.factored.expanding import Expander

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from correlation.timing.factored.expanding import Alarm


def expand(values: Iterable[bytes | str]) -> Iterator[Alarm]:
    """Yield the alarms of a partition's records.

    Parameters
    ----------
    values : iterable of bytes or str
        Values of the records, in order; tables before the base records that refer to them.

    Raises
    ------
    MissingTableError, UnknownRecordVersionError, InvalidRecordError
        See `Expander.take`.
    """
    expander = Expander()
    for value in values:
        yield from expander.take(json.loads(value))
