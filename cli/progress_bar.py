"""The progress bar of long commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn


def make_progress(console: Console, *amounts: ProgressColumn) -> Progress:
    """Build a progress bar; it is shown on terminals only, and removed at the end.

    Parameters
    ----------
    console
        Console to print to.
    *amounts
        Columns after the bar, such as the amount done and the remaining time.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        *amounts,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
