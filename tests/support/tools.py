"""Tools that a developer's machine may lack: their tests are skipped there, and fail in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def skip(reason: str, remedy: str, *, module: bool = False) -> NoReturn:
    """Skip a test that lacks a tool; fail it if the variable CI is set, as CI systems do.

    Parameters
    ----------
    reason
        What is missing.
    remedy
        How to install it.
    module
        Whether all tests of the module that is imported lack the tool.
    """
    message = f"{reason}: {remedy}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message, allow_module_level=module)


def check_tools(item: pytest.Item) -> None:
    """Skip or fail a test with the mark `needs_tool(program, remedy)` whose program is missing."""
    for mark in item.iter_markers("needs_tool"):
        program, remedy = mark.args
        if shutil.which(program) is None:
            skip(f"{program} is not installed", remedy)
