"""A plugin of pytest that shows failures as soon as they happen.

A run that is cut off shows no summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_NAME = "failures-at-once"


class FailuresAtOnce:
    """Writes each failure when it is reported.

    Parameters
    ----------
    terminal
        Writes the report of the run.
    """

    def __init__(self, terminal: TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the failure of a test, of its setup or of its teardown."""
        if report.failed:
            self._write(report, f"{report.nodeid} ({report.when})")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write the failure to read a file of tests."""
        if report.failed:
            self._write(report, report.nodeid)

    def _write(self, report: pytest.TestReport | pytest.CollectReport, title: str) -> None:
        self._terminal.write_line("")
        self._terminal.write_sep("_", title)
        self._terminal.write_line(report.longreprtext)
        for name, content in report.sections:
            self._terminal.write_sep("-", name)
            self._terminal.write_line(content)
        self._terminal.flush()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show the failures of this run; workers report to the process that started them."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(terminal), _NAME)
