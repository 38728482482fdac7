"""The commands and settings of docs/security.md work as the page describes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import trustme

from cli.main import main
from cli.settings import Settings as CliSettings
from service.access.keys import read_keys
from service.access.startup import access_problems
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
SWITCH_ON, CLIENT, TOKENS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def export(script: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[list[str]]:
    """Set the variables that a script exports; return its other commands."""
    others = []
    for line in script.strip().splitlines():
        command, *arguments = shlex.split(line.replace("/etc/coincide", str(folder)))
        if command != "export":
            others.append([command, *arguments])
            continue
        for assignment in arguments:
            monkeypatch.setenv(*assignment.split("=", 1))
    return others


def test_access_control_is_on_after_the_commands_of_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *commands, last = export(SWITCH_ON, monkeypatch, tmp_path)
    certificate = trustme.CA().issue_cert("coincide.example.com")
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "tls.pem"))
    certificate.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    for command, *arguments in commands:
        assert command == "coincide"
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code
    assert last == ["coincide", "serve"]
    settings = Settings()
    assert access_problems(settings) == []
    assert settings.is_protected
    keys = read_keys(tmp_path / "keys.json")
    assert [(it.name, it.role, it.names) for it in keys] == [
        ("ada", "admin", []),
        ("ci", "editor", ["ci-"]),
        ("prometheus", "viewer", []),
    ]
    # The page abbreviates a key by its beginning.
    assert all(it.startswith("coincide_") for it in capsys.readouterr().out.splitlines())


def test_client_reads_the_settings_of_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    export(CLIENT, monkeypatch, tmp_path)
    found = CliSettings()
    assert found.url == "https://coincide.example.com:8080"
    assert found.api_key is not None
    assert found.api_key.get_secret_value() == "coincide_…"
    assert "coincide_" not in repr(found)


def test_settings_of_the_issuer_are_valid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert export(TOKENS, monkeypatch, tmp_path) == []
    settings = Settings()
    assert access_problems(settings) == []
    assert settings.oidc_roles["payments"] == "editor:payments-"
    create_app(settings)


def test_page_names_only_settings_that_exist() -> None:
    named = set(re.findall(r"COINCIDE_(\w+)", PAGE))
    known = {it.upper() for it in (*Settings.model_fields, *CliSettings.model_fields)}
    assert named - known == set()
