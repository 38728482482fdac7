"""The kinds of conditions: one registration each."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from correlation.timing.kinds import TIMING_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import ConditionKind

KINDS: Mapping[str, ConditionKind] = MappingProxyType({kind.name: kind for kind in TIMING_KINDS})
