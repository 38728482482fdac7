"""State of the job, as each role sees it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from service.access.callers import EVERYONE, Caller, Role
from service.api.health import get_job
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.plane import ControlPlane

_TEXTS = {"exception": "at /opt/a.py", "slots_problem": "OSError: /opt/b"}


def plane(texts: Mapping[str, str | None]) -> ControlPlane:
    slots = {"slots": 2, "wanted_slots": 3, "slots_problem": texts["slots_problem"]}
    found = SimpleNamespace(
        metrics=SimpleNamespace(job=lambda: {"exception": texts["exception"]}),
        log=SimpleNamespace(newest=7),
        slots=lambda: dict(slots),
        job_is_up=lambda: True,
        applied_config_offset=lambda: 7,
    )
    return cast("ControlPlane", found)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
def test_texts_of_exceptions_are_hidden(role: Role) -> None:
    caller = Caller("vera", role, (), "key")
    found = asyncio.run(get_job(plane(_TEXTS), caller))
    for text in (found.exception, found.slots_problem):
        assert text is not None
        assert_names(text, "the role admin")
        assert "/opt" not in text
    nothing = asyncio.run(get_job(plane(dict.fromkeys(_TEXTS)), caller))
    assert (nothing.exception, nothing.slots_problem) == (None, None)


@pytest.mark.parametrize("caller", [Caller("ada", Role.ADMIN, (), "key"), EVERYONE])
def test_admin_reads_them(caller: Caller) -> None:
    found = asyncio.run(get_job(plane(_TEXTS), caller))
    assert (found.exception, found.slots_problem) == tuple(_TEXTS.values())
