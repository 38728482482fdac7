"""Child processes of the local stack: they end with their parent and log to a file."""

from __future__ import annotations

import os
import re
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

# A process is asked often at first, later at intervals of a tenth of the time waited, up to half a
# second: a question takes time from the process.
_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.5
TAIL_LINES = 15
# Number of bytes read from the end of a log: Java may write hundreds of lines after an error.
_TAIL_BYTES = 1024 * 1024
# An error that this project logs; Java writes its times in another format.
_ERROR = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR ")
_KILLED = "killed by a user, or by the system because memory is short"
LOG_BYTES = 10 * 1024 * 1024
# Number of rotated logs; FILE.1 is the newest.
LOGS_KEPT = 3


class ChildProcess:
    """One child process in its own process group, so that Ctrl-C reaches only its parent.

    Parameters
    ----------
    name
        Name of the process in messages.
    command
        The command and its arguments.
    log_path
        File for the output of the process; appended to, and rotated by size.
    environment
        Environment variables in addition to those of this process.
    log_bytes
        Min size at which `check` rotates the log.
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
        # Size of the log before the messages that `log_end` shows.
        self._log_begin = 0

    @property
    def pid(self) -> int | None:
        """The process id; None before the start and after the stop."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The exit code if the process has ended by itself; None while it runs or is stopped."""
        return self._process.poll() if self._process else None

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; its log file and folder are created."""
        if self.running:
            return
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._rotate_log()
        self.begin_log()
        leash = [sys.executable, "-m", "cli.stack.leash", str(os.getpid())]
        with self.log_path.open("ab") as log:
            # The command is built by this package.
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
        """Wait until ``ready`` returns true; it is polled.

        Parameters
        ----------
        ready
            Returns whether the process is ready.
        timeout_seconds
            Max wait.
        alarm
            Called at every poll; raises to stop waiting, for instance when another required
            process has ended.

        Raises
        ------
        ProcessError
            The process ended, or was not ready in time; the message has the end of its log.
        """
        begin = time.monotonic()
        while not ready():
            self.check()
            if alarm:
                alarm()
            waited = time.monotonic() - begin
            if waited > timeout_seconds:
                raise ProcessError(
                    f"the {self.name} was not ready after {timeout_seconds:g} s{self.log_end()}"
                )
            time.sleep(min(max(waited / 10, _POLL_SECONDS), _MAX_POLL_SECONDS))

    def check(self) -> None:
        """Raise ProcessError, with the end of the log, when the process has ended by itself.

        The log of a running process is rotated when it is too large.
        """
        code = self.exit_code
        if code is not None:
            raise ProcessError(f"the {self.name} ended with {_describe(code)}{self.log_end()}")
        self._rotate_log()

    def _rotate_log(self) -> None:
        """Rotate a log that is too large, while the process keeps writing to it.

        The process and its children append to an inherited file, so the content is copied and the
        file is truncated. Output in the microseconds between the two steps is lost. The
        alternative, a pipe through this process, would lose all output after its death.
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
            self._log_begin = 0
        except OSError:
            # A full disk or a removed log must not end the process.
            return

    def begin_log(self) -> None:
        """Let `log_end` leave out what is logged so far."""
        self._log_begin = self.log_path.stat().st_size if self.log_path.exists() else 0

    def log_end(self, lines: int = TAIL_LINES) -> str:
        """Return the last lines since the start, in a form to append to a sentence.

        The last error that this project has logged comes first, if Java has written many lines
        after it.
        """
        try:
            with self.log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(self._log_begin, log.tell() - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        found = text.rstrip().splitlines()
        earlier, shown = found[:-lines], found[-lines:]
        errors = [it for it in earlier if _ERROR.match(it)]
        if errors and not any(map(_ERROR.match, shown)):
            shown = [errors[-1], "…", *shown]
        return f"; last lines of {self.log_path}:\n  " + "\n  ".join(shown)

    def stop(self, patience_seconds: float = 30) -> int | None:
        """Stop the process with SIGTERM, and with SIGKILL if it does not end in time.

        Parameters
        ----------
        patience_seconds
            Time between SIGTERM and SIGKILL.

        Returns
        -------
        int or None
            Exit code; None if the process was not started.
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
        """Kill the process and its children, like a crash."""
        process = self._process
        if process is None:
            return
        self._kill_group(process.pid)
        process.wait()

    @staticmethod
    def _kill_group(group: int) -> None:
        """Kill the remaining processes of the child's process group."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return


def _describe(code: int) -> str:
    """Describe an exit code; minus the number of the signal that has ended the process."""
    if code >= 0:
        return f"exit code {code}"
    cause = _KILLED if code == -signal.SIGKILL else signal.strsignal(-code)
    return f"exit code {code} ({cause})"
