"""Roles and rights of callers."""

from __future__ import annotations

import pytest

from service.access.callers import EVERYONE, STRANGER, Caller, Role
from service.errors import ForbiddenError
from service.settings import ROLE_NAMES
from tests.support.messages import assert_names


def test_settings_know_the_roles() -> None:
    assert tuple(it.label for it in Role) == ROLE_NAMES


@pytest.mark.parametrize(
    ("caller", "name", "allowed"),
    [
        (Caller("c", Role.VIEWER), "a-x", False),
        (Caller("c", Role.EDITOR), "a-x", True),
        (Caller("c", Role.EDITOR, ("a-",)), "a-x", True),
        (Caller("c", Role.EDITOR, ("b-", "a-")), "a-x", True),
        (Caller("c", Role.EDITOR, ("b-",)), "a-x", False),
        (Caller("c", Role.EDITOR, ("a-",)), "a", False),
        (Caller("c", Role.ADMIN), "a-x", True),
        (EVERYONE, "a-x", True),
        (STRANGER, "a-x", False),
    ],
)
def test_rights_to_names(caller: Caller, name: str, *, allowed: bool) -> None:
    assert caller.may_write(name) is allowed
    if allowed:
        caller.require_name("stream", name)
        return
    with pytest.raises(ForbiddenError):
        caller.require_name("stream", name)


def test_refusal_names_the_role_that_is_needed() -> None:
    with pytest.raises(ForbiddenError) as caught:
        Caller("ada", Role.VIEWER).require_role(Role.EDITOR)
    assert_names(caught.value.detail, "role editor", "ada", "role viewer")
    with pytest.raises(ForbiddenError) as caught:
        Caller("ada", Role.EDITOR, ("a-", "b-")).require_name("stream", "c")
    assert_names(caught.value.detail, "role admin", "stream 'c'", "ada", "begin with: a-, b-")
