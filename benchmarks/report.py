"""Tables of measurements, printed on the terminal and written to docs/performance.md."""

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
from rich.text import Text

_PACKAGES = ("pyspark", "numba", "numpy", "pyarrow", "confluent-kafka")


class Picture(NamedTuple):
    """A plot beside a table.

    Attributes
    ----------
    name : str
        Name of the file in docs/figures, without extension.
    shows : str
        Alternative text of the plot.
    figure : Figure
        The plot.
    """

    name: str
    shows: str
    figure: Figure


@dataclass(frozen=True)
class Report:
    """Result of a benchmark.

    Parameters
    ----------
    title : str
        Title of the table.
    text : str
        Description of the measurement and of the figures.
    columns : sequence of str
        Headings.
    rows : sequence of sequence of str
        Cells.
    pictures : sequence of Picture
        Plots of the same measurements.
    """

    title: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: Sequence[Picture] = ()

    def show(self) -> None:
        """Print the table."""
        table = Table(title=self.title, caption=Text(self.text), caption_justify="left")
        for number, heading in enumerate(self.columns):
            table.add_column(heading, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*map(Text, row))
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
    """Return a description of the machine."""
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
