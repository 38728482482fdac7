"""Run the benchmarks: `python -m benchmarks [NAME ...] [--write | --quick]`.

`--write` writes the tables to docs/performance.md and docs/figures.md, with a description of the
machine, and the plots to docs/figures/. Tables of benchmarks that were not run are kept. `--quick`
runs the benchmarks of docs/figures.md in a few minutes, which is too short for meaningful figures.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.plotting import save
from benchmarks.report import Report, describe_machine

_DOCS = Path(__file__).parent.parent / "docs"


class Page(NamedTuple):
    """A page of tables.

    Attributes
    ----------
    path : Path
        Path of the page.
    names : tuple of str
        Benchmarks whose tables are on the page.
    head : str
        Text above the tables.
    """

    path: Path
    names: tuple[str, ...]
    head: str


_PERFORMANCE = Page(
    _DOCS / "performance.md",
    (
        "kernel",
        "buffer",
        "attributes",
        "tokens",
        "factored",
        "alarms",
        "path",
        "outputs",
        "stages",
        "sharing",
        "conditions",
        "cluster",
        "response",
        "waiting",
        "longrun",
        "kills",
    ),
    """\
# Performance

Measured by `make bench` on {machine}
The cores are shared with other machines, and not all tables are from the same type of processor:
compare the values of one table, not of two runs.
The papers' experiments are repeated in [figures](figures.md).
Tables of top-k conditions: [set rates of the join](figures.md#swoop-set-rate-against-window-and-k),
[latency](figures.md#swoop-latency) and [the whole path](figures.md#swoop-the-whole-path).

""",
)
_FIGURES = Page(
    _DOCS / "figures.md",
    ("ll10", "ll10.lookups", "ptj", "tsa", "tsa.path", "swoop", "swoop.path"),
    """\
# The papers' figures

The experiments of Lee and Lee 2010 (LL10, Figures 3 to 8), the comparison that Mok, Woo and
Lee 2006 (PTJ) argue for, the benchmark that Novoseltsev 2013 (TSA) leaves open, and the experiments
of Mann, Augsten and Jensen 2017 (SWOOP), with this software's algorithms. All random events are
drawn from fixed seeds; every table comes from runs in which all algorithms found the same pairs,
alarms or lists.

Measured by `python -m benchmarks NAME --write`, with the names ll10, ll10.lookups, ptj, tsa,
tsa.path, swoop and swoop.path, on {machine}
The cores are shared with other machines, and not all tables are from the same type of processor:
compare the values of one table, not of two runs.

""",
)
_PAGES = (_PERFORMANCE, _FIGURES)
NAMES = tuple(name for page in _PAGES for name in page.names)


def main() -> None:
    """Run the named benchmarks, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="put them into docs/")
    parser.add_argument(
        "--quick", action="store_true", help=f"short runs, of {', '.join(_FIGURES.names)} only"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; use {', '.join(NAMES)}")
    if options.quick and options.write:
        parser.error("--quick: its figures mean nothing; leave out --write or --quick")
    names = options.names or (_FIGURES.names if options.quick else NAMES)
    if options.quick and not set(names) <= set(_FIGURES.names):
        parser.error(f"--quick: say it with {', '.join(_FIGURES.names)} only")
    for page in _PAGES:
        reports: list[Report] = []
        for name in page.names:
            if name in names:
                reports += _run(name, quick=options.quick)
        if options.write and reports:
            write_page(page, reports)


def _run(name: str, *, quick: bool) -> list[Report]:
    """Run a benchmark and show its tables."""
    run = import_module(f"benchmarks.{name}").run
    reports: list[Report] = run(quick=True) if quick else run()
    for report in reports:
        report.show()
    return reports


def write_page(page: Page, reports: list[Report]) -> None:
    """Write the tables to the page, and the plots beside it; keep those of other benchmarks."""
    sections: dict[str, str] = {}
    if page.path.exists():
        for section in page.path.read_text().split("\n## ")[1:]:
            sections[section.split("\n", 1)[0]] = f"## {section.rstrip()}\n"
    for report in reports:
        sections[report.title] = report.to_markdown()
        for picture in report.pictures:
            save(picture, page.path.parent / "figures")
    page.path.write_text(
        page.head.format(machine=describe_machine()) + "\n".join(sections.values())
    )


if __name__ == "__main__":
    main()
