"""Child processes of the local stack: on a leash, logging to a file, stopped by their id."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import ProcessError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_POLL_SECONDS = 0.05
_TAIL_LINES = 15
# Enough for the lines shown; logs can be long.
_TAIL_BYTES = 64 * 1024
LOG_BYTES = 10 * 1024 * 1024
# Beside the one that is written: FILE.1 is the newest of them.
LOGS_KEPT = 3


class ChildProcess:
    """One child process in a process group of its own, so that Ctrl-C reaches only its parent.

    Parameters
    ----------
    name
        What messages call it.
    command
        The command and its arguments.
    log_path
        File that takes what the process prints; appended to, and rotated by size.
    environment
        Variables set in addition to this process's own.
    log_bytes
        Size from which `check` rotates the log.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._command = list(command)
        self._environment = dict(environment or {})
        self._log_bytes = log_bytes
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
        self._rotate_log()
        leash = [sys.executable, "-m", "cli.stack.leash", str(os.getpid())]
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
        """Raise ProcessError, with the end of the log, when the process has ended by itself.

        A running process has its log rotated when that has grown too long.
        """
        code = self.exit_code
        if code is not None:
            raise ProcessError(f"the {self.name} ended with exit code {code}{self.log_end()}")
        self._rotate_log()

    def _rotate_log(self) -> None:
        """Move a log that is too long to the kept ones, without the process noticing.

        The process, and its children, write to the file that they inherited, so the content is
        copied and the file is emptied; they append, and go on at its new end. What is written in
        the microseconds between is lost. The alternative, a pipe through this process, would lose
        all that its children say after its death.
        """
        path = self.log_path
        try:
            if path.stat().st_size < self._log_bytes:
                return
            for number in range(LOGS_KEPT, 1, -1):
                with suppress(FileNotFoundError):
                    Path(f"{path}.{number - 1}").replace(f"{path}.{number}")
            shutil.copyfile(path, f"{path}.1")
            os.truncate(path, 0)
        except OSError:
            # A full disk, or a log that somebody has removed: no reason to end what runs.
            return

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
