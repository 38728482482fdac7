"""Error messages of the command: one sentence, never a traceback."""

from __future__ import annotations

import errno
import os
import socket
from importlib import metadata
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING

import httpx
import pytest
from typer.main import get_group

from cli.client.rest import ServiceClient
from cli.errors import BrokerError
from cli.main import app, main
from cli.stack.broker import EmbeddedBroker
from cli.stack.java import Java
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path


COMMANDS = get_group(app).commands.values()


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("variable", "value", "command", "names"),
    [
        ("KAFKA_PROPERTIES", "{a:1}", "serve", ["not valid JSON"]),
        ("KAFKA_PROPERTIES", "xx", "tail", ["not valid JSON"]),
        (
            "KAFKA_PROPERTIES",
            '{"a": [1]}',
            "tail",
            ["COINCIDE_KAFKA_PROPERTIES: a:", "string", "number", "true or false"],
        ),
        ("KAFKA_PROPERTIES", '{"no.such": 1}', "tail", ["no.such"]),
        ("PORT", "eighty", "serve", ["whole number", "0 to 65535"]),
        ("PORT", "65536", "serve", ["whole number", "0 to 65535"]),
        ("PORT", "eighty", "up", ["whole number", "0 to 65535"]),
        ("MAX_RECORD_BYTES", "0", "tail", ["whole number", "at least 1"]),
        ("EXPLAIN_SECONDS", "soon", "serve", ["greater than 0", "at most"]),
        ("START_TIMEOUT_SECONDS", "0", "serve", ["greater than 0"]),
        ("CREATE_EVENT_TOPICS", "maybe", "serve", ["true or false"]),
        ("UMASK", "rw", "up", ["match pattern"]),
    ],
)
def test_a_wrong_variable_is_named(
    variable: str,
    value: str,
    command: str,
    names: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"COINCIDE_{variable}", value)
    assert _run(command) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: COINCIDE_{variable}: ")
    assert_names(said, *names)


def test_up_names_a_folder_of_data_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert _run("up", "--data", str(file)) == 2
    assert capsys.readouterr().err.startswith(f"error: {file} is not a folder; ")


def test_jars_names_the_variable_of_a_folder_that_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("COINCIDE_JARS", str(tmp_path / "file" / "below"))
    assert _run("jars") == 4
    said = capsys.readouterr().err
    assert_names(said, "below", os.strerror(errno.ENOTDIR), "COINCIDE_JARS")


def test_a_url_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text("{kind: stream, name: a}")
    assert _run("apply", "-f", str(file), "--url", "http://here:port") == 2
    assert "error: --url: must be a URL of http://" in capsys.readouterr().err


def test_doctor_writes_in_the_encoding_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr("cli.stack.doctor.answers", lambda *_: False)
    # An address where a program cannot listen.
    _run("doctor", "--url", "http://127.0.0.1:1")
    assert rb"\u2713" in written.getvalue()


def test_a_refusal_keeps_its_colons(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, remedy = "no stream is called 'nosuch'", "register it"
    errors = [{"field": "b", "problem": problem, "remedy": remedy}]

    def answer(_: httpx.Client, method: str, path: str, **__: object) -> httpx.Response:
        request = httpx.Request(method, f"http://here{path}")
        return httpx.Response(422, json={"errors": errors}, request=request)

    monkeypatch.setattr(httpx.Client, "request", answer)
    with (
        ServiceClient("http://here") as service,
        pytest.raises(Exception, match=f": 422 b: {problem}: {remedy}$"),
    ):
        service.put("/v1/conditions/near", {})


def test_a_variable_that_nobody_reads_is_told_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_BOOTSTRP", "here:9092")
    assert _run("apply", "-f", "/nowhere") == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: COINCIDE_BOOTSTRP: ")
    assert first.endswith("did you mean COINCIDE_BOOTSTRAP?")
    assert second.startswith("error: /nowhere cannot be read")


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [(), ("tail",)])
def test_help_has_two_names(
    option: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*command, option) == 0
    assert " ".join(("Usage: coincide", *command)) in capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *(found.name or "" for found in COMMANDS)])
def test_help_shows_no_type_for_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(*command.split(), "--help") == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--version") == 0
    assert capsys.readouterr().out == f"coincide {metadata.version('coincide')}\n"


def test_a_port_that_is_taken_is_told_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.stack.broker.find_java", lambda: Java(tmp_path / "java", 17))
    monkeypatch.setattr("cli.stack.broker.broker_jars", lambda _: [])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BrokerError, match=rf"port {port} .* --broker-port, .*:{port}$"):
            EmbeddedBroker(tmp_path, port).start()


@pytest.mark.parametrize(
    ("cause", "exit_code"), [(KeyboardInterrupt(), 130), (ValueError("wrong"), None)]
)
def test_interrupt_inside_an_extension_module_is_an_interrupt(
    cause: BaseException, exit_code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*_arguments: object) -> None:
        # Python raises it for a C function that ignored the exception of a signal handler.
        raise SystemError("returned a result with an exception set") from cause

    monkeypatch.setattr("cli.stack.jars.broker_jars", call)
    with pytest.raises(SystemError if exit_code is None else SystemExit) as ended:
        main(["jars"])
    assert getattr(ended.value, "code", None) == exit_code


@pytest.mark.parametrize("key", ["", " ", "planted secret", "planted\nsecret", "plantedß"])
def test_key_that_cannot_be_sent_is_named_and_not_shown(
    key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_API_KEY", key)
    assert _run("export", "--url", "http://127.0.0.1:1") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: COINCIDE_API_KEY: ")
    assert "planted" not in error
