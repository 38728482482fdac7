"""Start a command that ends when its parent does: ``python -m cli.stack.leash PID COMMAND…``.

The process asks the kernel for SIGTERM at its parent's death and then becomes the command, so the
command has the process id that the parent knows. Where the kernel has no such thing (macOS) the
command is started all the same, without the leash.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def main(arguments: list[str]) -> None:
    """Put this process on the leash of its parent and become the command.

    Parameters
    ----------
    arguments
        The parent's process id, then the command and its arguments.
    """
    parent, *command = arguments
    die_with_parent()
    # A parent that died before the call above sends no signal any more.
    if sys.platform == "linux" and os.getppid() != int(parent):
        sys.exit(1)
    # The command is what this package's own parent process gave.
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
