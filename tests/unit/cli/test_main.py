"""What the command says when something is wrong: one sentence, never a traceback."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING

import httpx
import pytest

from cli.main import main
from cli.rest import ServiceClient

if TYPE_CHECKING:
    from pathlib import Path


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("variable", "value", "command", "said"),
    [
        ("KAFKA_PROPERTIES", "{a:1}", "serve", " is not a JSON object"),
        ("KAFKA_PROPERTIES", "xx", "tail", " is not a JSON object"),
        ("KAFKA_PROPERTIES", '{"a": [1]}', "tail", " a: Input should be a valid string"),
        ("KAFKA_PROPERTIES", '{"no.such": 1}', "tail", ": No such configuration property"),
        ("PORT", "many", "serve", ": Input should be a valid integer"),
    ],
)
def test_a_wrong_variable_is_named(
    variable: str,
    value: str,
    command: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"COINCIDE_{variable}", value)
    assert _run(command) == 2
    assert capsys.readouterr().err.startswith(f"error: COINCIDE_{variable}{said}")


def test_up_names_a_folder_of_data_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert _run("up", "--data", str(file)) == 2
    assert capsys.readouterr().err.startswith(f"error: {file} is not a folder; name another")


def test_jars_names_the_variable_of_a_folder_that_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("COINCIDE_JARS", str(tmp_path / "file" / "below"))
    assert _run("jars") == 4
    said = capsys.readouterr().err
    assert "below cannot be made or written: Not a directory; " in said
    assert "COINCIDE_JARS" in said


def test_a_url_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text("{kind: stream, name: a}")
    assert _run("apply", "-f", str(file), "--url", "http://here:port") == 2
    assert "error: http://here:port is no URL" in capsys.readouterr().err


def test_doctor_writes_in_the_encoding_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr("cli.doctor.answers", lambda *_: False)
    # An address where nobody can listen.
    _run("doctor", "--url", "http://127.0.0.1:1")
    assert rb"\u2713" in written.getvalue()


def test_a_refusal_keeps_its_colons(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [{"field": "b", "problem": "no stream is called 'nosuch'", "remedy": "register it"}]

    def answer(_: httpx.Client, method: str, path: str, **__: object) -> httpx.Response:
        request = httpx.Request(method, f"http://here{path}")
        return httpx.Response(422, json={"errors": errors}, request=request)

    monkeypatch.setattr(httpx.Client, "request", answer)
    with (
        ServiceClient("http://here") as service,
        pytest.raises(Exception, match=r": 422 b: no stream is called 'nosuch': register it$"),
    ):
        service.put("/v1/conditions/near", {})
