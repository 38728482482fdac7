"""Plots for the pages, in one style; equal figures produce identical files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from benchmarks.report import Picture

# Okabe and Ito's colours, which colour-blind readers can distinguish, with one marker each. An
# algorithm has the same style in all plots.
STYLES = {
    "simple": ("#000000", "o"),
    "ssort": ("#e69f00", "s"),
    "eager": ("#009e73", "^"),
    "lazy": ("#56b4e9", "v"),
    "lazy_lookup": ("#0072b2", "D"),
    "indexed": ("#d55e00", "P"),
    "auto": ("#cc79a7", "X"),
}
_OTHERS = (("#777777", "*"), *STYLES.values())
_INCHES = (7.2, 4.2)
_FEW_DECADES = 3
# Matplotlib's types list the name of every setting; a plain dict does not match them.
_SETTINGS: dict[Any, Any] = {
    # Text is stored as text, a tenth of the size of its outlines.
    "svg.fonttype": "none",
    # Ids in the file are derived from this value instead of random numbers.
    "svg.hashsalt": "coincide",
    "font.size": 10,
    "font.family": "sans-serif",
    # The viewer's fonts are unknown: any sans-serif font is accepted.
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
}


def make_axes(x: str, y: str, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Build a figure of one or more plots side by side.

    Parameters
    ----------
    x, y : str
        Labels of the axes, with units.
    columns : int
        Number of plots; they share the vertical axis.

    Returns
    -------
    Figure, list of Axes
    """
    figure = Figure(figsize=_INCHES, layout="constrained")
    grid = figure.subplots(1, columns, sharey=True, squeeze=False)
    axes = list(grid[0])
    for axis in axes:
        axis.set_xlabel(x)
        axis.grid(visible=True, color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_ylabel(y)
    return figure, axes


def draw_lines(axis: Axes, x: Sequence[float], lines: Mapping[str, Sequence[float]]) -> None:
    """Draw a line for each name; names other than algorithms get the unused styles."""
    others = [style for style in _OTHERS if style not in {STYLES.get(name) for name in lines}]
    for name, y in lines.items():
        colour, marker = STYLES[name] if name in STYLES else others.pop(0)
        axis.plot(x, y, label=name, color=colour, marker=marker, markersize=4.5, linewidth=1.3)


def add_legend(figure: Figure, axis: Axes, columns: int = 4) -> None:
    """Add one legend below all plots."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def show_plain_ticks(axis: Axes, ticks: Sequence[int], *, rotated: bool = False) -> None:
    """Label the horizontal axis at these values, in plain numbers."""
    axis.set_xticks(list(ticks), [f"{tick:,}" for tick in ticks], rotation=45 if rotated else 0)
    axis.minorticks_off()


def show_plain_values(axis: Axes) -> None:
    """Label a logarithmic vertical axis in plain numbers: 1, 2, 5, 10 for few decades."""
    low, high = axis.get_ylim()
    few = high < low * 10**_FEW_DECADES
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def save(picture: Picture, folder: Path) -> Path:
    """Write a plot as SVG.

    Parameters
    ----------
    picture : Picture
        The plot.
    folder : Path
        Folder of the file; created if it is missing.

    Returns
    -------
    Path
        Path of the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{picture.name}.svg"
    with mpl.rc_context(_SETTINGS):
        # The layout is computed once: each computation moves the axes by an invisible amount, but
        # ids are derived from their position.
        picture.figure.draw_without_rendering()
        picture.figure.set_layout_engine("none")
        # The file contains neither the date nor the version of the library.
        picture.figure.savefig(path, metadata={"Date": None, "Creator": None})
    return path


def draw_by_window(
    y: str, windows: Sequence[int], plots: Mapping[int, Mapping[str, Sequence[float]]]
) -> Figure:
    """Draw lines over the window, both logarithmic, in a plot for each k.

    Parameters
    ----------
    y : str
        Label of the vertical axis, with its unit.
    windows : sequence of int
        Windows, in sets.
    plots : mapping of int to mapping of str to sequence of float
        By k, the values of each line, one for each window; NaN is not drawn.
    """
    figure, axes = make_axes("window, sets", y, len(plots))
    for axis, (k, lines) in zip(axes, plots.items(), strict=True):
        axis.set_title(f"k = {k:,}", fontsize=10)
        axis.set_xscale("log")
        axis.set_yscale("log")
        draw_lines(axis, windows, lines)
        show_plain_ticks(axis, windows, rotated=True)
    show_plain_values(axes[0])
    add_legend(figure, axes[0], max(map(len, plots.values())))
    return figure
