"""Child processes of the local stack: on a leash, logging to a file, stopped by their id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from cli.errors import ProcessError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_POLL_SECONDS = 0.05
_TAIL_LINES = 15
# Enough for the lines shown; logs can be long.
_TAIL_BYTES = 64 * 1024


class ChildProcess:
    """One child process in a process group of its own, so that Ctrl-C reaches only its parent.

    Parameters
    ----------
    name
        What messages call it.
    command
        The command and its arguments.
    log_path
        File that takes what the process prints; appended to.
    environment
        Variables set in addition to this process's own.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._command = list(command)
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None before the start and after the stop."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of a process that ended by itself; None while it runs or is stopped."""
        return self._process.poll() if self._process else None

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; its file of log is made with its folder."""
        if self.running:
            return
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        leash = [sys.executable, "-m", "cli.leash", str(os.getpid())]
        with self.log_path.open("ab") as log:
            # The command is this package's own.
            self._process = subprocess.Popen(  # noqa: S603
                [*leash, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
                process_group=0,
            )

    def wait_until(
        self,
        ready: Callable[[], bool],
        timeout_seconds: float,
        alarm: Callable[[], None] | None = None,
    ) -> None:
        """Wait until ``ready`` tells so, asking again and again.

        Parameters
        ----------
        ready
            Tells whether the process does its work.
        timeout_seconds
            Longest wait.
        alarm
            Called at every question; raises to give up, for instance when a process that this
            one needs has ended.

        Raises
        ------
        ProcessError
            The process ended, or was not ready in time; the message has the end of its log.
        """
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            self.check()
            if alarm:
                alarm()
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"the {self.name} was not ready after {timeout_seconds:g} s{self.log_end()}"
                )
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raise ProcessError, with the end of the log, when the process has ended by itself."""
        code = self.exit_code
        if code is not None:
            raise ProcessError(f"the {self.name} ended with exit code {code}{self.log_end()}")

    def log_end(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the log, ready to follow a sentence."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        shown = text.rstrip().splitlines()[-lines:]
        return f"; the end of {self.log_path}:\n  " + "\n  ".join(shown)

    def stop(self, patience_seconds: float = 30) -> int | None:
        """End the process with SIGTERM, and with SIGKILL when that is not enough.

        Parameters
        ----------
        patience_seconds
            Time the process has to end by itself.

        Returns
        -------
        int or None
            Its exit code; None when it was not started.
        """
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(patience_seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        self._kill_group(process.pid)
        self._process = None
        return process.returncode

    def kill(self) -> None:
        """End the process and its own children at once, as a crash would."""
        process = self._process
        if process is None:
            return
        self._kill_group(process.pid)
        process.wait()

    @staticmethod
    def _kill_group(group: int) -> None:
        """Kill what is left of the process group, which is the child's own and nobody else's."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
