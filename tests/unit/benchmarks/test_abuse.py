"""Outcomes, log and table of the abuse benchmark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from benchmarks.abuse.__main__ import Abused, forged_lines, problems, report
from benchmarks.abuse.kinds import KINDS, describe
from tests.support.messages import assert_names
from tests.support.raw_http import DROPPED

if TYPE_CHECKING:
    from pathlib import Path

_LOG = r"""2026-01-01 00:00:00,000 WARNING service.access.authentication: not valid
2026-01-01 00:00:00,001 ERROR service.fold: stream/x\n2026-01-01 INFO service.access: ada signed in
    Traceback (most recent call last):
    ValueError: x
coincide: the service stopped
"""


def test_only_forged_lines_of_a_log_are_found(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    log.write_text(_LOG)
    assert list(forged_lines(log)) == []
    forged = "2026-01-01 00:00:00,000 INFO service.access: ada signed in"
    log.write_text(f"{_LOG}{forged}\nINFO forged\n{forged[:30]}: red \x1b[31m\n")
    found = list(forged_lines(log))
    assert len(found) == 3
    assert "ada signed in" in found[0]
    assert "INFO forged" in found[1]
    assert "x1b" in found[2]


def test_table_has_a_row_for_each_kind() -> None:
    outcomes = {kind: Counter({DROPPED: 1, "503": 2000, "401": 3}) for kind in KINDS}
    assert describe(outcomes["forged tokens"]) == "3 × 401, 2,000 × 503, 1 × dropped"
    memory = (100 * 2**20, 120 * 2**20, 121 * 2**20)
    rounds = Counter(dict.fromkeys(KINDS, 4))
    table = report(Abused(outcomes, rounds, [0.1, 0.5, 2.0], ["x"], memory, 60.0, asked=3))
    assert len(table.rows) == 10
    assert_names(table.text, "3 requests", "0.5 s in the median")
    assert_names(table.text, "2.0 s at most", "failures of all kinds: 1")
    assert "100 MiB at the begin, 120 MiB after" in table.text
    assert_names(table.text, "issuer of tokens: 3")


@pytest.mark.parametrize(
    ("asked", "growth_mib", "wrong"),
    [(1, 0, []), (6, 100, []), (0, 0, ["issuer"]), (7, 0, ["issuer"]), (1, 101, ["memory"])],
)
def test_memory_and_requests_to_the_issuer_are_bounded(
    asked: int, growth_mib: int, wrong: list[str]
) -> None:
    memory = (0, 2**20, (1 + growth_mib) * 2**20)
    abused = Abused({}, Counter(), [], [], memory, seconds=89.0, asked=asked)
    assert [it.partition(":")[0] for it in problems(abused, ())] == wrong
    assert len([*problems(abused, ["log: x"])]) == len(wrong) + 1
