"""The local stack checks its ports before it starts or writes anything."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from cli.errors import BrokerError, ServiceError
from cli.main import main
from cli.stack.broker import free_port
from cli.stack.data_folder import exclusive
from cli.stack.options import StackOptions
from cli.stack.ports import check_ports
from tests.support.messages import assert_names, naming

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port on which a server listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_ports_that_are_free_are_accepted() -> None:
    check_ports(StackOptions(None, broker_port=free_port(), service_port=free_port()))
    check_ports(StackOptions(None, broker_port=0, service_port=0))


def test_broker_port_is_not_needed_beside_a_broker_of_the_users_own(taken: int) -> None:
    bootstrap = f"127.0.0.1:{taken}"
    check_ports(StackOptions(None, bootstrap=bootstrap, broker_port=taken, service_port=0))


def test_broker_port_in_use_is_told_with_the_options(taken: int) -> None:
    with pytest.raises(
        BrokerError,
        match=rf"port {taken} on .* is in use; .*--broker-port, .*--bootstrap .*:{taken}",
    ):
        check_ports(StackOptions(None, broker_port=taken, service_port=0))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])  # noqa: S104 - only tried
def test_service_port_in_use_is_told_with_the_option(
    host: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_HOST", host)
    with pytest.raises(
        ServiceError, match=rf"port {taken} on {host} is in use; .*--port or COINCIDE_PORT"
    ):
        check_ports(StackOptions(None, broker_port=0, service_port=taken))


def test_address_that_is_not_of_this_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COINCIDE_HOST", "192.0.2.1")
    with pytest.raises(ServiceError, match=r"on 192\.0\.2\.1 cannot be used: "):
        check_ports(StackOptions(None, broker_port=0, service_port=free_port()))


def test_broker_and_service_need_two_ports() -> None:
    port = free_port()
    with pytest.raises(ServiceError, match=naming(f"port {port}", "broker", "service")):
        check_ports(StackOptions(None, broker_port=port, service_port=port))


def test_up_that_is_refused_leaves_nothing_behind(
    taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "not" / "there"
    ports = ("--broker-port", "0", "--port", str(taken))
    assert _run("up", "--data", str(data), *ports) == 6
    assert f"port {taken} on 127.0.0.1 is in use" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    empty = tmp_path / "empty"
    empty.mkdir()
    assert _run("up", "--data", str(empty), *ports) == 6
    assert list(empty.iterdir()) == []


def test_up_names_another_stack_before_its_ports(
    taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with exclusive(tmp_path):
        assert _run("up", "--data", str(tmp_path), "--port", str(taken)) == 2
    assert "another local stack uses" in capsys.readouterr().err


def test_up_that_finds_no_broker_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing listens there, and the client would ask for ten seconds.
    monkeypatch.setattr("cli.stack.stack._ANSWER_SECONDS", 0.2)
    arguments = ("--port", "0", "--bootstrap", f"127.0.0.1:{free_port()}")
    assert _run("up", "--data", str(tmp_path / "data"), *arguments) == 5
    assert_names(capsys.readouterr().err, "remove --bootstrap")
    assert list(tmp_path.iterdir()) == []


def test_up_without_java_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _run("up", "--data", str(tmp_path / "data")) == 3
    assert "bin/java does not run" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
