"""`coincide asyncapi` writes the document without a service or a broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cli.client.asyncapi_command import asyncapi

if TYPE_CHECKING:
    import pytest


def test_command_writes_the_document_of_a_prefix(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_PREFIX", "of-environment")
    for given, expected in (("team", "team.alarms"), (None, "of-environment.alarms")):
        asyncapi(prefix=given)
        document = json.loads(capfd.readouterr().out)
        assert document["channels"]["alarms"]["address"] == expected
