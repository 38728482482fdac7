"""The crash matrix: hit one process after another, and compare all results with the expected ones.

`python -m benchmarks.crashes --runs 200 --seed 0` runs the faults of 200 seeds, in groups that
share an installation. Installations of seeds from 1,000 on run on a Spark standalone cluster. Every
line of its output is a run; a group ends with the verdict over all its events. The table counts
runs by victim and by the moment that was really hit. It takes hours, and is therefore not part of
`python -m benchmarks`; a short sample is a test (tests/integration/test_crash_matrix.py).
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report import Report
from cli.errors import CliError
from tests.crash.faults import Moment, Victim, draw_fault, is_on_cluster
from tests.crash.group import Run, run_group
from tests.crash.judge import Verdict
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = 10
_ON_CLUSTER = " (cluster)"
# Rows of the table, in their order.
_NAMES = [*Victim, *(f"{it}{_ON_CLUSTER}" for it in Victim)]


class Outcome(NamedTuple):
    """Runs of one installation.

    Attributes
    ----------
    seeds
        Seeds of the group.
    runs
        Runs after which the installation has recovered.
    verdict
        Comparison of the results; None: the installation did not recover from the next seed.
    """

    seeds: Sequence[int]
    runs: Sequence[Run]
    verdict: Verdict | None


def run_groups(
    seeds: Sequence[int],
    folder: Path,
    group: int = GROUP,
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[Outcome]:
    """Run the faults of the seeds; folders of groups with a fault of the product are kept.

    Parameters
    ----------
    seeds
        The seeds.
    folder
        Folder of the data of all groups.
    group
        Number of faults that share an installation.
    patience_seconds
        Max time for a recovery.
    """
    found = []
    for begin in range(0, len(seeds), group):
        mine = seeds[begin : begin + group]
        where = folder / f"seeds-{mine[0]}-{mine[-1]}"
        runs: list[Run] = []
        verdict = None
        try:
            faults = [draw_fault(it) for it in mine]
            verdict = run_group(where, faults, runs, _say, patience_seconds)
        except (AssertionError, CliError) as error:
            _say(f"FAILED after {len(runs)} runs of seeds {mine[0]} to {mine[-1]}: {error}")
        else:
            _say(describe(mine, verdict))
        found.append(Outcome(mine, runs, verdict))
    return found


def describe(seeds: Sequence[int], verdict: Verdict) -> str:
    """Describe the verdict of a group."""
    total = (
        f"seeds {seeds[0]} to {seeds[-1]}: {verdict.expected.total():,} results, "
        f"{len(verdict.missing)} missing, {len(verdict.extra)} too many, "
        f"{len(verdict.twice)} twice, {len(verdict.problems)} other differences"
    )
    lines = [total]
    for title, found in zip(("missing", "too many", "twice", "other"), verdict[1:], strict=True):
        lines += [f"  {title}: {it[:500]}" for it in found[:3]]
    return "\n".join(lines)


def report(outcomes: Sequence[Outcome]) -> Report:
    """Build the table of victims and moments, and the totals in its text."""
    runs = [run for it in outcomes for run in it.runs]
    verdicts = [it.verdict for it in outcomes if it.verdict is not None]
    counts = Counter((_name(run), run.hit) for run in runs)
    victims = sorted({_name(run) for run in runs}, key=_NAMES.index)
    seeds = [seed for it in outcomes for seed in it.seeds]
    missing, extra, twice, other = (sum(len(it[place]) for it in verdicts) for place in range(1, 5))
    wrong = [it for it in outcomes if it.verdict is None or not it.verdict.is_right]
    failing = ", ".join(f"{it.seeds[0]} to {it.seeds[-1]}" for it in wrong) or "none"
    expected = sum(it.expected.total() for it in verdicts)
    return Report(
        "Crash matrix",
        (
            f"{len(runs)} runs, seeds {seeds[0]} to {seeds[-1]}, {len(outcomes)} installations. "
            f"{expected:,} results: {missing} missing, {extra} too many, {twice} twice, "
            f"{other} other differences. Groups of seeds with a difference: {failing}."
        ),
        ("victim", *Moment, "runs"),
        [
            [
                victim,
                *(f"{counts[victim, moment]}" for moment in Moment),
                f"{sum(counts[victim, moment] for moment in Moment)}",
            ]
            for victim in victims
        ],
    )


def _name(run: Run) -> str:
    """Return the victim of a run as its row is named."""
    suffix = _ON_CLUSTER if is_on_cluster(run.fault.seed) else ""
    return f"{run.fault.victim}{suffix}"


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Run the matrix with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crashes")
    parser.add_argument("--runs", type=int, default=200, help="number of faults")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--group", type=int, default=GROUP, help="faults of one installation")
    parser.add_argument("--folder", type=Path, help="data of the groups; default: a new folder")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE_SECONDS, help="max seconds of a recovery"
    )
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="coincide-crashes-"))
    seeds = range(options.seed, options.seed + options.runs)
    found = report(run_groups(seeds, folder, options.group, options.patience))
    found.show()
    print(found.to_markdown())


if __name__ == "__main__":
    main()
