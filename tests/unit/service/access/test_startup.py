"""The service refuses to start with settings of access control that are missing or not valid."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from pydantic import ValidationError

from kafka_client.allocator import ARENAS
from service.access.keys import write_keys
from service.access.startup import access_problems
from service.main import WRONG_SETTING, serve
from service.settings import Settings
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path

OPEN_HOST = "192.0.2.1"
ISSUER = {"oidc_issuer": "https://login.example.com", "oidc_audience": "coincide"}


def problems(**values: object) -> list[str]:
    return access_problems(Settings.model_validate(values))


def test_nothing_is_needed_on_loopback() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert problems(host=host) == []


@pytest.mark.parametrize("host", [OPEN_HOST, "0.0.0.0", "::", "coincide.lan"])  # noqa: S104 - recognised, not bound
def test_other_hosts_need_access_control(host: str) -> None:
    (found,) = problems(host=host)
    assert found.startswith("COINCIDE_HOST: ")
    assert_names(found, host, "access control is off", "COINCIDE_KEYS_FILE")
    assert_names(found, "COINCIDE_OIDC_ISSUER", "COINCIDE_OPEN_TO_EVERYONE=true")
    assert problems(host=host, open_to_everyone=True) == []
    assert problems(host=host, **ISSUER) == []


def test_keys_are_access_control(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [])
    assert problems(host=OPEN_HOST, keys_file=path) == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"keys_file": "/nonexistent/keys.json"}, "COINCIDE_KEYS_FILE"),
        ({"oidc_issuer": "https://login.example.com"}, "COINCIDE_OIDC_AUDIENCE"),
        ({"oidc_audience": "coincide"}, "COINCIDE_OIDC_ISSUER"),
        ({**ISSUER, "open_to_everyone": True}, "COINCIDE_OPEN_TO_EVERYONE"),
        ({"tls_certificate": "/nonexistent/c.pem"}, "COINCIDE_TLS_KEY"),
        ({"tls_key": "/nonexistent/k.pem"}, "COINCIDE_TLS_CERTIFICATE"),
    ],
)
def test_incomplete_settings_are_named(values: dict[str, Any], field: str) -> None:
    (found,) = problems(**values)
    assert found.startswith(f"{field}: ")
    assert "; " in found


def test_client_authorities_need_a_certificate() -> None:
    found = problems(tls_client_ca="/nonexistent/ca.pem")
    assert [it.partition(":")[0] for it in found] == [
        "COINCIDE_TLS_CERTIFICATE",
        "COINCIDE_TLS_KEY",
    ]


def test_files_of_tls_are_checked(tmp_path: Path) -> None:
    certificate, key, authority = (tmp_path / name for name in ("c.pem", "k.pem", "ca.pem"))
    ca = trustme.CA()
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    other = ca.issue_cert("localhost")
    paths = {"tls_certificate": certificate, "tls_key": certificate}
    assert problems(**paths) == []
    other.private_key_pem.write_to_path(str(key))
    (found,) = problems(**(paths | {"tls_key": key}))
    assert found.startswith("COINCIDE_TLS_CERTIFICATE: ")
    authority.write_text("nothing")
    (found,) = problems(**paths, tls_client_ca=authority)
    assert found.startswith("COINCIDE_TLS_CLIENT_CA: ")
    ca.cert_pem.write_to_path(str(authority))
    assert problems(**paths, tls_client_ca=authority) == []


def test_service_does_not_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set first: it is then removed after the test.
    monkeypatch.setenv(ARENAS, "9")
    monkeypatch.delenv(ARENAS)
    # Neither the broker nor the port is tried.
    assert serve(Settings(host=OPEN_HOST, bootstrap="127.0.0.1:1")) == WRONG_SETTING
    assert capsys.readouterr().err.startswith(
        f"coincide: COINCIDE_HOST: other machines reach {OPEN_HOST}"
    )
    # Before any thread is started.
    assert os.environ[ARENAS] == "1"


@pytest.mark.parametrize("given", ["editor:", "viewer:", "editor:a-,", "editor:A B", "owner"])
def test_roles_without_a_valid_prefix_are_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="team: "):
        Settings(oidc_roles={"team": given})
