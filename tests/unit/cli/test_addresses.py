"""Addresses of broker and service: malformed addresses, and addresses that do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.main import main
from cli.settings import Settings, options_to, read_settings
from cli.stack.broker import free_port
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path

_BROKER = ("address of a broker", "host:port", "1 to 65535", "localhost:9092")
_URL = ("http:// or https://", "http://127.0.0.1:8080")


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "resources.yaml"
    path.write_text("{kind: stream, name: a}")
    return str(path)


@pytest.mark.parametrize("value", ["localhost", "host:port:x", "h:0", "h:65536", "http://h:1", ""])
@pytest.mark.parametrize(
    "command",
    [
        ("tail",),
        ("produce", "-", "--topic", "t"),
        ("repair-config",),
        ("backup", "none.jsonl"),
        ("restore", "none.jsonl"),
        ("doctor",),
        ("up", "--ephemeral"),
        ("replay", "--topics", "-f", "none.yaml"),
    ],
)
def test_malformed_bootstrap_is_refused(
    command: tuple[str, ...], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*command, "--bootstrap", value) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: --bootstrap: '{value}' ")
    assert_names(line, *_BROKER)


@pytest.mark.parametrize(
    "value",
    [
        "localhost",
        "localhost:8080",
        "ftp://x",
        "http://",
        "http://h:port",
        "http://h:0",
        "http://[",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("apply", "-f", "FILE"),
        ("explain", "c", "--a", "x", "--b", "y"),
        ("reset-watermark", "s"),
        ("produce", "-", "--stream", "s"),
        ("doctor",),
    ],
)
def test_malformed_url_is_refused(
    command: tuple[str, ...], value: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [file if argument == "FILE" else argument for argument in command]
    assert _run(*arguments, "--url", value) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --url: ")
    assert_names(line, *_URL)


@pytest.mark.parametrize("command", ["tail", "serve", "job"])
def test_malformed_variable_of_the_broker_is_refused(
    command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_BOOTSTRAP", "kafka-1:9092,kafka-2")
    assert _run(command) == 2
    # The job logs through the handlers of pytest. Kafka clients of other tests of this process may
    # write to the same file.
    if command != "job":
        assert_names(capfd.readouterr().err, "error: COINCIDE_BOOTSTRAP: 'kafka-2'", *_BROKER)


def test_malformed_variable_of_the_service_is_refused(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_URL", "https//x")
    assert _run("apply", "-f", file) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: COINCIDE_URL: ")
    assert_names(line, *_URL)


def test_options_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COINCIDE_BOOTSTRAP", "nonsense")
    monkeypatch.setenv("COINCIDE_URL", "http://there:1/below")
    settings = read_settings(bootstrap=" a:1, [::1]:65535,10.0.0.1:9 ", url=None)
    assert settings.bootstrap == "a:1,[::1]:65535,10.0.0.1:9"
    assert settings.url == "http://there:1/below"


def test_service_that_does_not_answer_is_told_with_the_option_and_the_variable(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert _run("apply", "-f", file, "--url", url) == 6
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert_names(said, "service", url, "Connection refused", "`coincide serve`")
    assert_names(said, "--url", "COINCIDE_URL")


@pytest.mark.parametrize("command", [("tail",), ("produce", "-", "--topic", "t")])
def test_broker_that_does_not_answer_is_told_with_the_option_and_the_variable(
    command: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The client would ask for ten seconds.
    monkeypatch.setattr("cli.client.topics.METADATA_SECONDS", 0.2)
    bootstrap = f"127.0.0.1:{free_port()}"
    assert _run(*command, "--bootstrap", bootstrap) == 5
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert_names(said, "broker", bootstrap, "--bootstrap", "COINCIDE_BOOTSTRAP")
    assert "KafkaError" not in said


def test_hints_repeat_the_options_that_differ_from_the_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COINCIDE_BOOTSTRAP", "here:1")
    given = read_settings(bootstrap="there:1,there:2", url="http://there/?")
    assert options_to(given, "bootstrap", "url") == (
        " --bootstrap there:1,there:2 --url 'http://there/?'"
    )
    assert options_to(Settings(), "bootstrap", "url") == ""
    assert options_to(read_settings(bootstrap="here:1"), "bootstrap") == ""
    monkeypatch.setenv("COINCIDE_BOOTSTRAP", "nonsense")
    assert options_to(given, "bootstrap") == " --bootstrap there:1,there:2"
