"""A flame graph: the stacks of Python threads, as wide as their CPU time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from benchmarks.stages.stages import STAGES, is_of_driver, stage_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from benchmarks.stages.samples import Samples, Stack

_INCHES = (11, 6.5)
# Frames that are narrower are left out, as a share of the width.
_NARROWEST = 0.003
_CHARACTERS = 190
# Min number of characters of a label.
_MIN_ROOM = 3
_MAX_DEPTH = 16
_COLOURS = (
    "#56b4e9",
    "#e69f00",
    "#f0e442",
    "#d55e00",
    "#009e73",
    "#8fbc8f",
    "#cc79a7",
    "#bbbbbb",
    "#dddddd",
)
# Frames around the work of all stages.
_AROUND = ("<frozen", "spark_jobs/worker/worker_daemon", "pyspark/daemon", "pyspark/worker.py")


def draw_flames(samples: Samples) -> Figure:
    """Draw the stacks of the workers.

    Parameters
    ----------
    samples : Samples
        Samples of a job.
    """
    stacks: Counter[Stack] = Counter()
    for stack, count in samples.stacks.items():
        if not is_of_driver(stack):
            inner = tuple(it for it in stack if not any(name in it for name in _AROUND))
            stacks[inner] += count
    figure = Figure(figsize=_INCHES, layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    axis.set_xlim(0, 1)
    axis.set_ylim(0, _MAX_DEPTH)
    _draw(axis, stacks, 0.0, stacks.total(), 0)
    shown = {stage_of(stack) for stack in stacks}
    for stage, colour in zip(STAGES, _COLOURS, strict=False):
        if stage in shown:
            axis.barh(-1, 0, color=colour, label=stage)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw(axis: Axes, stacks: Mapping[Stack, int], left: float, total: int, depth: int) -> None:
    """Draw the frames of a depth, the widest first, and those that they call above them."""
    callees: dict[str, Counter[Stack]] = {}
    for stack, count in stacks.items():
        if len(stack) > depth:
            callees.setdefault(stack[depth], Counter())[stack] += count
    for frame, found in sorted(callees.items(), key=lambda it: (-it[1].total(), it[0])):
        width = found.total() / total
        if width < _NARROWEST or depth >= _MAX_DEPTH:
            break
        stages: Counter[str] = Counter()
        for stack, count in found.items():
            stages[stage_of(stack)] += count
        colour = _COLOURS[STAGES.index(stages.most_common(1)[0][0])]
        axis.barh(depth, width, 0.92, left, align="edge", color=colour)
        name = frame.split(" (", 1)[0].rsplit(".", 1)[-1]
        room = int(width * _CHARACTERS)
        if room >= _MIN_ROOM:
            text = name if len(name) <= room else f"{name[: room - 1]}…"
            axis.text(left + width / 2, depth + 0.46, text, ha="center", va="center", fontsize=6)
        _draw(axis, found, left, total, depth + 1)
        left += width
