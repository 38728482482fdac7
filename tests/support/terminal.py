"""Run a command in a terminal (pty), and read its screen."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_POLL_SECONDS = 0.1
_READ_BYTES = 65_536
# A control sequence, which may be incomplete, or another character.
_PART = re.compile(
    r"\x1b\[(?P<given>[0-9;?]*)(?P<end>[A-Za-z])|(?P<begun>\x1b(\[[0-9;?]*)?$)|(?s:.)"
)


class Screen:
    """The lines of a terminal: those that have left the screen, and those on it.

    It understands the control sequences of rich's live view, and fails at others.

    Parameters
    ----------
    width, height
        Numbers of columns and of lines on the screen.
    """

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self._begun = ""

    @property
    def lines(self) -> list[str]:
        """All lines, without spaces at their ends."""
        return ["".join(it).rstrip() for it in self._rows]

    @property
    def visible(self) -> list[str]:
        """The lines on the screen."""
        return self.lines[-self._height :]

    def write(self, output: str) -> None:
        """Show the output of a command."""
        given, self._begun = self._begun + output, ""
        for part in _PART.finditer(given):
            if part["begun"] is not None:
                self._begun = part["begun"]
            elif part["end"] is not None:
                self._control(part["end"], part["given"])
            else:
                self._type(part[0])

    def _control(self, end: str, given: str) -> None:
        if end == "A":
            # The cursor cannot reach lines that have left the screen.
            top = max(len(self._rows) - self._height, 0)
            self._row = max(self._row - int(given or 1), top)
        elif (end, given) == ("K", "2"):
            self._rows[self._row] = []
        else:
            # Colours, and the visibility of the cursor.
            assert end == "m" or given == "?25", f"CSI {given}{end}"

    def _type(self, character: str) -> None:
        if character == "\r":
            self._column = 0
            return
        if character == "\n" or self._column == self._width:
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append([])
            if character == "\n":
                return
            self._column = 0
        assert character.isprintable(), repr(character)
        row = self._rows[self._row]
        row += " " * (self._column + 1 - len(row))
        row[self._column] = character
        self._column += 1


class Terminal:
    """A command that runs in a terminal.

    Parameters
    ----------
    process
        The command.
    descriptor
        The other end of its terminal.
    screen
        Shows what the command has written.
    """

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int, screen: Screen) -> None:
        self.process = process
        self.screen = screen
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def wait_for(self, part: str) -> list[str]:
        """Wait until a line on the screen contains a part; return the lines on the screen."""

        def is_shown() -> bool:
            return any(part in it for it in self.screen.visible)

        wait_until(lambda: is_shown() or not self._read(), briefly=True)
        assert is_shown(), self.screen.lines
        return self.screen.visible

    def wait_for_end(self) -> int:
        """Wait for the end of the command; return its exit code."""
        wait_until(lambda: not self._read(), briefly=True)
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        """Show what the command has written; return whether it may write more."""
        if not select.select([self._descriptor], [], [], _POLL_SECONDS)[0]:
            return True
        try:
            output = os.read(self._descriptor, _READ_BYTES)
        except OSError:
            # Linux: the command has closed the terminal.
            return False
        self.screen.write(self._decoder.decode(output))
        return bool(output)


@contextmanager
def in_terminal(
    command: Sequence[str], environment: Mapping[str, str], width: int, height: int
) -> Iterator[Terminal]:
    """Run a command in a terminal of a given size; kill it if it has not ended."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    # The size is that of the terminal.
    inherited = {key: it for key, it in os.environ.items() if key not in {"COLUMNS", "LINES"}}
    variables = {**inherited, "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(  # noqa: S603 - the command under test
        command, stdin=inner, stdout=inner, stderr=inner, env=variables, start_new_session=True
    )
    os.close(inner)
    try:
        yield Terminal(process, outer, Screen(width, height))
    finally:
        process.kill()
        process.wait()
        os.close(outer)
