"""Run the local stack until Ctrl-C (``up``)."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from cli.interrupts import plain_interrupts
from cli.settings import Settings
from cli.stack.data_folder import check_data, exclusive, is_claimed, remove_data
from cli.stack.stack import LocalStack, check_start, terminable
from spark_jobs.driver.rights import warn_of_wide_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from cli.stack.options import StackOptions


def run_up(options: StackOptions, console: Console, *, fresh: bool = False) -> None:
    """Start the local stack, print its addresses, and run it until Ctrl-C or SIGTERM.

    Parameters
    ----------
    options
        Options of the stack.
    console
        Console for messages.
    fresh
        Remove the data of earlier runs from the data folder first.

    Raises
    ------
    CliError
        Java is missing, a port is in use, the external broker does not answer, or the data folder
        is not owned by a local stack: nothing was written. Or a process did not start, or ended
        by itself: all others were stopped.
    KeyboardInterrupt
        Ctrl-C or SIGTERM came before the stack was up; it was stopped.
    """
    data = options.data
    settings = Settings()
    with terminable(), _umask(settings.umask), ExitStack() as held:
        if data:
            check_data(data)
        is_known = data is not None and is_claimed(data)
        # If a running stack uses the folder, that error is better than one about its ports.
        if data and is_known:
            held.enter_context(exclusive(data))
        check_start(options)
        if data and not is_known:
            held.enter_context(exclusive(data))
        if fresh and data:
            remove_data(data)
        if data:
            warn_of_wide_folder(str(data), settings.umask)
        is_up = False
        try:
            with plain_interrupts(), LocalStack(options, console) as stack:
                _say_where(stack, console)
                is_up = True
                stack.watch()
        except KeyboardInterrupt:
            console.print("stopped")
            if not is_up:
                raise


@contextmanager
def _umask(digits: str) -> Iterator[None]:
    """Set the umask, which all processes inherit: their files contain events."""
    before = os.umask(int(digits, 8))
    try:
        yield
    finally:
        os.umask(before)


def _say_where(stack: LocalStack, console: Console) -> None:
    """Print the addresses of the stack and the next steps."""
    console.print(f"\n[bold]Coincide is up.[/] Kafka at {stack.bootstrap}, REST at {stack.url}/v1")
    for name, path in stack.log_paths.items():
        console.print(f"  log of the {name:<8} {path}", soft_wrap=True)
    console.print(
        f"  metrics             {stack.url}/metrics\n"
        f"  register a stream   curl -X PUT {stack.url}/v1/streams/acoustic \\\n"
        "                        -H 'Content-Type: application/json' \\\n"
        '                        -d \'{"topic":"acoustic","max_uncertainty":"200ms",'
        '"max_delay":"1s"}\'\n'
        f"  send events         coincide produce FILE --bootstrap {stack.bootstrap} "
        f"--url {stack.url} --stream acoustic\n"
        f"  follow alarms       coincide tail --bootstrap {stack.bootstrap}\n"
        "Ctrl-C stops the stack.",
        soft_wrap=True,
        markup=False,
    )
