"""docs/configuration.md lists every setting with its process and its true default."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.settings import Settings as CliSettings
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"
ROLES: dict[str, type[BaseSettings]] = {
    "service": ServiceSettings,
    "job": JobSettings,
    "cli": CliSettings,
}
ROW = re.compile(r"^\| `(COINCIDE_\w+)` \| ([a-z, ]+) \| (.+?) \| (.+) \|$", re.MULTILINE)


def _default(field: FieldInfo) -> str:
    """Write a default as a user would set it: JSON, without quotes around a string."""
    found = field.get_default(call_default_factory=True)
    if found is None:
        return "none"
    text = str(found) if isinstance(found, str | Path) else json.dumps(found)
    return f"`{text}`"


def _settings() -> dict[tuple[str, str], set[str]]:
    """Reader of each (variable, default)."""
    readers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for role, settings in ROLES.items():
        for name, field in settings.model_fields.items():
            readers[f"COINCIDE_{name.upper()}", _default(field)].add(role)
    return readers


def test_table_lists_every_setting_with_its_default() -> None:
    rows = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    documented = {(name, default): set(roles.split(", ")) for name, roles, default, _ in rows}
    assert documented == _settings()
    assert len(rows) == len(documented)
