"""https: certificates of service and client, and the command line as client."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
import trustme

from cli.client.rest import ServiceClient
from cli.errors import RefusedError, ServiceError, UsageError
from cli.settings import Settings as CliSettings
from service.access.keys import new_key, write_keys
from tests.rest.running import fresh_settings, running
from tests.support.command import coincide
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kafka
PATIENT = ("--timeout", str(PATIENCE_SECONDS))
NOW_US = 1_767_225_600_000_000


class Secured(NamedTuple):
    """Address of a service with https, the authority of its certificate, and a key."""

    url: str
    authority: Path
    key: str
    certificate: Path


@pytest.fixture(scope="module")
def secured(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    certificate, authority, keys = (folder / it for it in ("service.pem", "ca.pem", "keys.json"))
    ca.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(certificate)
    )
    ca.cert_pem.write_to_path(str(authority))
    key, text = new_key("ada", "admin", (), NOW_US)
    write_keys(keys, [key])
    settings = fresh_settings(
        kafka_bootstrap, tls_certificate=certificate, tls_key=certificate, keys_file=keys
    )
    with running(settings) as service:
        yield Secured(str(service.client.base_url), authority, text, certificate)


def test_service_answers_by_https_only(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=secured.authority)
    answer = httpx.get(f"{secured.url}/livez", verify=context, timeout=PATIENCE_SECONDS)
    assert answer.json() == {"live": True}
    assert answer.headers["strict-transport-security"] == "max-age=63072000"
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{secured.url}/livez", timeout=PATIENCE_SECONDS)
    with pytest.raises(httpx.HTTPError):
        httpx.get(secured.url.replace("https:", "http:") + "/livez")


def test_health_check_asks_a_service_with_https(secured: Secured) -> None:
    port = secured.url.rstrip("/").rpartition(":")[2]
    own = {"COINCIDE_PORT": port, "COINCIDE_TLS_CERTIFICATE": str(secured.certificate)}
    own |= {"COINCIDE_TLS_KEY": str(secured.certificate), "COINCIDE_HOST": "0.0.0.0"}  # noqa: S104
    for checked in ("live", "ready"):
        done = coincide("health", checked, *PATIENT, environment=own)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # Not by http.
    done = coincide("health", environment={"COINCIDE_PORT": port})
    assert done.returncode == 1
    assert done.stderr.startswith(f"http://127.0.0.1:{port}/livez does not answer: ")


def test_health_check_of_the_job_needs_the_key(secured: Secured) -> None:
    own = {"COINCIDE_URL": secured.url, "COINCIDE_CA_FILE": str(secured.authority)}
    key = {"COINCIDE_API_KEY": secured.key}
    done = coincide("health", "job", *PATIENT, environment={**own, **key})
    assert done.returncode == 1
    assert_names(done.stderr, "the job", "not reported recently")
    done = coincide("health", "job", *PATIENT, environment=own)
    assert done.returncode == 1
    assert "401" in done.stderr


def test_lenient_check_of_the_job_fails_only_if_its_state_is_known(secured: Secured) -> None:
    own = {"COINCIDE_URL": secured.url, "COINCIDE_CA_FILE": str(secured.authority)}
    known = {**own, "COINCIDE_API_KEY": secured.key}
    stopped = {**known, "COINCIDE_URL": "https://127.0.0.1:9"}
    strange = {**known, "COINCIDE_URL": "127.0.0.1"}
    codes = [
        coincide("health", "job", "--lenient", *PATIENT, environment=given).returncode
        for given in (known, own, stopped, strange)
    ]
    assert codes == [1, 0, 0, 2]


def test_old_versions_of_tls_are_refused(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=secured.authority)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{secured.url}/livez", verify=context, timeout=PATIENCE_SECONDS)


def settings(secured: Secured, **changes: object) -> CliSettings:
    values = {"url": secured.url, "api_key": secured.key, "ca_file": secured.authority, **changes}
    return CliSettings.model_validate(values)


def test_command_line_sends_its_key_and_trusts_the_authority(secured: Secured) -> None:
    with ServiceClient.of(settings(secured)) as client:
        assert client.ready()
        assert client.names("stream") == []


def test_command_line_names_the_variable_of_a_missing_key(secured: Secured) -> None:
    with (
        ServiceClient.of(settings(secured, api_key=None)) as client,
        pytest.raises(RefusedError, match=r"401 .*; set COINCIDE_API_KEY"),
    ):
        client.get("/v1/streams")


def test_command_line_refuses_an_unknown_authority(secured: Secured) -> None:
    with (
        ServiceClient.of(settings(secured, ca_file=None)) as client,
        pytest.raises(ServiceError, match="certificate verify failed"),
    ):
        client.get("/v1/streams")


def test_unusable_file_of_certificates_is_named(secured: Secured, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    for content in (None, "nothing"):
        if content is not None:
            path.write_text(content)
        with pytest.raises(UsageError, match="COINCIDE_CA_FILE: "):
            ServiceClient.of(settings(secured, ca_file=path))


def test_clients_need_a_certificate_if_their_authority_is_set(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    ca, clients = trustme.CA(), trustme.CA()
    certificate, authority, own = (tmp_path / it for it in ("service.pem", "ca.pem", "client.pem"))
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    clients.cert_pem.write_to_path(str(authority))
    clients.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(own))
    changes = {
        "tls_certificate": certificate,
        "tls_key": certificate,
        "tls_client_ca": authority,
    }
    context = ssl.create_default_context()
    ca.configure_trust(context)
    with running(fresh_settings(kafka_bootstrap, **changes)) as service:
        url = f"{service.client.base_url}/livez"
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, verify=context)
        context.load_cert_chain(own)
        assert httpx.get(url, verify=context, timeout=PATIENCE_SECONDS).is_success
        # The certificate of the service is not one of a client, unless the authority signed it.
        variables = {f"COINCIDE_{name.upper()}": str(it) for name, it in changes.items()}
        variables["COINCIDE_PORT"] = str(service.client.base_url.port)
        done = coincide("health", environment=variables)
        assert (done.returncode, "does not answer" in done.stderr) == (1, True)
    authority.write_bytes(ca.cert_pem.bytes())
    with running(fresh_settings(kafka_bootstrap, **changes)) as service:
        variables["COINCIDE_PORT"] = str(service.client.base_url.port)
        assert coincide("health", *PATIENT, environment=variables).returncode == 0
