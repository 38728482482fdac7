"""Start a command that ends when its parent does: ``python -m cli.stack.leash PID COMMAND…``.

The process asks the kernel for SIGTERM at its parent's death and then executes the command, which
keeps the process id that the parent knows. On systems without this signal (macOS) the command is
started too, but does not end with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def main(arguments: list[str]) -> None:
    """Set up the signal at the parent's death and execute the command.

    Parameters
    ----------
    arguments
        Process id of the parent, then the command and its arguments.
    """
    parent, *command = arguments
    die_with_parent()
    # If the parent died before the call above, the signal is never sent.
    if sys.platform == "linux" and os.getppid() != int(parent):
        sys.exit(1)
    # The command comes from the parent process, which belongs to this package.
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
