"""Checks of the settings of access control, before the service listens."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from service.access.keys import read_keys
from service.errors import AccessSettingsError
from service.hosts import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.settings import Settings


def access_problems(settings: Settings) -> list[str]:
    """Return the problems of the settings of access control; the service must not start with any.

    Parameters
    ----------
    settings : Settings
        Settings of the service, valid one by one.
    """
    return [*_of_openness(settings), *_of_tokens(settings), *_of_keys(settings), *_of_tls(settings)]


def _of_openness(settings: Settings) -> Iterator[str]:
    if settings.is_protected and settings.open_to_everyone:
        yield (
            "COINCIDE_OPEN_TO_EVERYONE: access control is on; remove this variable, or "
            "COINCIDE_KEYS_FILE and COINCIDE_OIDC_ISSUER"
        )
    if is_loopback(settings.host) or settings.is_protected or settings.open_to_everyone:
        return
    yield (
        f"COINCIDE_HOST: other machines reach {settings.host}, and access control is off; set "
        "COINCIDE_KEYS_FILE (see `coincide keys create --help`) or COINCIDE_OIDC_ISSUER, or "
        "accept requests of everyone with COINCIDE_OPEN_TO_EVERYONE=true"
    )


def _of_tokens(settings: Settings) -> Iterator[str]:
    if settings.oidc_issuer is not None and settings.oidc_audience is None:
        yield (
            "COINCIDE_OIDC_AUDIENCE: is missing; set the audience of the tokens for this service: "
            "tokens for other services are refused"
        )
    if settings.oidc_issuer is None and (settings.oidc_audience or settings.oidc_jwks_url):
        yield "COINCIDE_OIDC_ISSUER: is missing; set the issuer of the tokens"


def _of_keys(settings: Settings) -> Iterator[str]:
    if settings.keys_file is None:
        return
    try:
        read_keys(settings.keys_file)
    except AccessSettingsError as error:
        yield error.detail


def _of_tls(settings: Settings) -> Iterator[str]:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None or key is None:
        for name, found in (("CERTIFICATE", certificate), ("KEY", key)):
            if found is None and (certificate or key or settings.tls_client_ca):
                yield (
                    f"COINCIDE_TLS_{name}: is missing; https needs COINCIDE_TLS_CERTIFICATE and "
                    "COINCIDE_TLS_KEY"
                )
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # The empty password: a key that needs one must not ask for it at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        yield (
            f"COINCIDE_TLS_CERTIFICATE: {certificate} and {key} cannot be used "
            f"({error.strerror or error}); use a PEM certificate and its key without a password"
        )
    if settings.tls_client_ca is None:
        return
    try:
        context.load_verify_locations(settings.tls_client_ca)
    except OSError as error:
        yield (
            f"COINCIDE_TLS_CLIENT_CA: {settings.tls_client_ca} cannot be used "
            f"({error.strerror or error}); use certificates in PEM"
        )
