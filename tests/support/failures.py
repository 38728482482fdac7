"""Failures, shown as soon as they happen: a run that is cut off shows no summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_NAME = "failures-at-once"


class FailuresAtOnce:
    """A plugin of pytest that writes each failure when it is reported.

    Parameters
    ----------
    terminal
        Writes the report of the run.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the failure of a test, of its setup or of its teardown."""
        if report.failed:
            self._terminal.write_line("")
            self._terminal.write_sep("_", f"{report.nodeid} ({report.when})")
            self._terminal.write_line(report.longreprtext)


def show_failures_at_once(config: pytest.Config) -> None:
    """Show the failures of this run; workers report to the process that started them."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(terminal), _NAME)
