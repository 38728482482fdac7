"""Mutations: a test that would not notice a wrong method proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import Phase, find, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

_Case = TypeVar("_Case")
# The same cases in each run: a rare one is found always or never.
ONCE = settings(max_examples=2000, phases=[Phase.generate], database=None, derandomize=True)


def assert_caught(
    cases: SearchStrategy[_Case],
    check: Callable[[_Case], object],
    owner: object,
    name: str,
    wrong: Callable[..., object],
) -> None:
    """Fail unless a check fails for one of the cases while a method is wrong.

    Parameters
    ----------
    cases
        The cases.
    check
        The check of a case; it raises AssertionError.
    owner, name, wrong
        Class or module, name of the method or function, and its replacement.
    """

    def fails(case: _Case) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, wrong)
            try:
                check(case)
            except AssertionError:
                return True
        return False

    find(cases, fails, settings=ONCE)
