"""The processes of the local stack, before any of them is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cli.stack.options import StackOptions
from cli.stack.stack import LocalStack

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("options", [(), ("--rebuild",), ("--from-now",), ("--from-beginning",)])
def test_options_of_the_job_are_those_of_its_command_only(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    given = StackOptions(tmp_path, "127.0.0.1:1", service_port=1, job_options=options)
    stack = LocalStack(given, Console(quiet=True))
    job, service = stack._job._command, stack._service._command  # noqa: SLF001 - nothing is started
    assert job[-1 - len(options) :] == ["job", *options]
    assert service[-1] == "serve"
