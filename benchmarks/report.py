"""Tables of measurements: shown on the terminal and kept in docs/performance.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

_PACKAGES = ("pyspark", "numba", "numpy", "pyarrow", "confluent-kafka")


class Picture(NamedTuple):
    """A plot beside a table.

    Attributes
    ----------
    name : str
        Of the file in docs/figures, without its ending.
    shows : str
        What it shows, for who cannot see it.
    figure : Figure
        Drawn.
    """

    name: str
    shows: str
    figure: Figure


@dataclass(frozen=True)
class Report:
    """What one benchmark found.

    Parameters
    ----------
    title : str
        Of the table.
    text : str
        What was done, and how to read the figures.
    columns : sequence of str
        Headings.
    rows : sequence of sequence of str
        Cells.
    pictures : sequence of Picture
        Of the same measurements.
    """

    title: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: Sequence[Picture] = ()

    def show(self) -> None:
        """Print the table."""
        table = Table(title=self.title, caption=self.text, caption_justify="left")
        for number, heading in enumerate(self.columns):
            table.add_column(heading, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        Console().print(table)

    def to_markdown(self) -> str:
        """Write the table for the page."""
        lines = [
            f"## {self.title}",
            "",
            self.text.rstrip(),
            "",
            *(
                line
                for picture in self.pictures
                for line in (f"![{picture.shows}](figures/{picture.name}.svg)", "")
            ),
            "| " + " | ".join(self.columns) + " |",
            "|---" + "|--:" * (len(self.columns) - 1) + "|",
            *("| " + " | ".join(row) + " |" for row in self.rows),
            "",
        ]
        return "\n".join(lines)


def describe_machine() -> str:
    """Say on what the figures were measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"{os.cpu_count()} cores ({model}), {pages / 2**30:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}."
    )
