"""The progress bar of what one waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn


def make_progress(console: Console, *amounts: ProgressColumn) -> Progress:
    """Make the bar; it is gone when the work is done, and shown on terminals only.

    Parameters
    ----------
    console
        Where to.
    *amounts
        What stands behind the bar: how much is done, how long it takes.
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
