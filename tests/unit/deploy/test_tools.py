"""Tests without their tool are skipped on a developer's machine, and fail in CI."""

from __future__ import annotations

import pytest

from tests.support.tools import check_tools, skip


def _item(request: pytest.FixtureRequest) -> pytest.Item:
    assert isinstance(request.node, pytest.Item)
    return request.node


@pytest.mark.needs_tool("python3", "install Python")
def test_tool_that_is_installed_is_used(request: pytest.FixtureRequest) -> None:
    check_tools(_item(request))


@pytest.mark.parametrize(
    ("variable", "ends"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_tool_that_is_missing_fails_only_in_ci(
    variable: str,
    ends: type[BaseException],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", variable)
    # Added now: the test itself needs no tool.
    request.applymarker(pytest.mark.needs_tool("no-such-tool", "apt-get install it"))
    with pytest.raises(ends, match=r"^no-such-tool is not installed: apt-get install it$"):
        check_tools(_item(request))
    with pytest.raises(ends, match=r"^no data: fetch it$"):
        skip("no data", "fetch it", module=True)
