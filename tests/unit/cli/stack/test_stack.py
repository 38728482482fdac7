"""The processes of the local stack, before any of them is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cli.main import main
from cli.stack.options import StackOptions
from cli.stack.stack import LocalStack
from service.access.keys import new_key, write_keys
from tests.support.messages import assert_names

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


def test_up_refuses_other_interfaces_without_access_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COINCIDE_HOST", "0.0.0.0")  # noqa: S104 - refused
    shown = refused_up(tmp_path, capsys)
    assert_names(shown, "COINCIDE_HOST: other machines", "access control is off")
    for name in ("COINCIDE_KEYS_FILE", "COINCIDE_OIDC_ISSUER", "COINCIDE_OPEN_TO_EVERYONE=true"):
        assert name in shown


def test_up_needs_a_key_for_a_service_with_access_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "keys.json"
    write_keys(file, [new_key("up", "admin", (), 0)[0]])
    monkeypatch.setenv("COINCIDE_KEYS_FILE", str(file))
    assert "COINCIDE_API_KEY: is missing" in refused_up(tmp_path / "up", capsys)


def refused_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error of `coincide up`, which ends with exit code 2 and writes nothing."""
    folder.mkdir(exist_ok=True)
    with pytest.raises(SystemExit) as ended:
        main(["up", "--data", str(folder / "data")])
    assert ended.value.code == 2
    assert list(folder.iterdir()) == []
    return " ".join(capsys.readouterr().err.split())
