"""All kinds of abuse at once, for a short time, beside an honest client.

`python -m benchmarks.abuse` runs longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.abuse.__main__ import run
from benchmarks.abuse.kinds import KINDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.nightly]
SECONDS = 20
# An outcome that every run has, of kinds whose limits do not decide all answers.
EXPECTED = {
    "huge bodies": "413",
    "slow clients": "408",
    "thousands of live feeds": "503",
    "tricks with headers": "200",
    "forged tokens": "401",
    "guessed keys": "401",
}


def test_service_withstands_all_kinds_of_abuse_at_once(tmp_path: Path) -> None:
    found = run(SECONDS, tmp_path)
    assert found.failures == []
    assert {kind for kind in KINDS if not found.rounds[kind]} == set()
    assert found.honest
    for kind, status in EXPECTED.items():
        assert found.outcomes[kind][status] > 0, (kind, found.outcomes[kind])
