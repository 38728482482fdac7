"""Start of the ``coincide`` command; Ctrl-C ends it without a traceback, even during imports.

The modules of the command line take a third of a second to import. During that time an interrupt
ends the process at once; nothing has been opened or written by then.
"""

from __future__ import annotations

import os
import signal
import sys

from cli.exit_codes import INTERRUPTED
from cli.kernels import choose_kernel_folder


def main(arguments: list[str] | None = None) -> None:
    """Import and run the command line.

    Parameters
    ----------
    arguments
        Arguments without the program name; those of the process by default.

    Raises
    ------
    SystemExit
        Always, with the exit code.
    """
    # A process that was started with SIGINT ignored (nohup, shell background) keeps ignoring it.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _end_at_once)
    choose_kernel_folder(os.environ)
    # Imported while the handler above is set.
    from cli.main import main as run  # noqa: PLC0415

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run(arguments)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end_at_once(_number: int, _frame: object) -> None:
    """End the process without the traceback of an interrupted import."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
