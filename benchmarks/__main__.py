"""Run the benchmarks: `python -m benchmarks [NAME ...] [--write]`.

With `--write` the tables go into docs/performance.md, with the machine's description; those of
benchmarks that were not run stay as they are.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.report import Report, describe_machine

NAMES = (
    "kernel",
    "buffer",
    "factored",
    "path",
    "sharing",
    "response",
    "waiting",
    "longrun",
    "kills",
)
_PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
_HEAD = """\
# Performance

Measured by `make bench` on {machine}
The cores are shared with other machines: compare the figures of one table, not of two runs.

"""


def main() -> None:
    """Run what was asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="put them into docs/performance.md")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; use {', '.join(NAMES)}")
    reports: list[Report] = []
    for name in options.names or NAMES:
        for report in import_module(f"benchmarks.{name}").run():
            report.show()
            reports.append(report)
    if options.write:
        _write_page(reports)


def _write_page(reports: list[Report]) -> None:
    """Put the tables into the page; those of other benchmarks stay."""
    sections: dict[str, str] = {}
    if _PAGE.exists():
        for section in _PAGE.read_text().split("\n## ")[1:]:
            sections[section.split("\n", 1)[0]] = f"## {section.rstrip()}\n"
    for report in reports:
        sections[report.title] = report.to_markdown()
    _PAGE.write_text(_HEAD.format(machine=describe_machine()) + "\n".join(sections.values()))


if __name__ == "__main__":
    main()
