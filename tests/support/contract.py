"""Contract facts of a stream, built from plain lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.engine.contract import ContractFacts, declaration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from correlation.resources.streams import Stream


def facts_of(
    stream: Stream,
    lengths: Sequence[int],
    delays: Sequence[int] | None,
    late: int = 0,
    rejected: Mapping[str, int] | None = None,
) -> ContractFacts:
    """Build the facts of events with these lengths and delays in µs; None means not measured."""
    measured = ContractFacts.of_events(
        stream,
        np.array(lengths, np.int64),
        None if delays is None else np.array(delays, np.int64),
        late,
    )
    return measured.merged(ContractFacts(declaration(stream), rejected=dict(rejected or {})))
