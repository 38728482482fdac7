"""Settings of the service, read from the environment once (prefix COINCIDE_)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from correlation.resources.checks import NAME, check_topic
from kafka_client.settings import ClientSettings, json_list, string_properties, wrong_setting
from service.hosts import ANY_HOST, allowed_host, is_private_url

ROLE_NAMES = ("viewer", "editor", "admin")
# Signatures with private keys only: who can check a signature of HS256 can also forge it.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def _private_url(value: str) -> str:
    """Check a URL from which keys are fetched."""
    if not is_private_url(value):
        raise wrong_setting(
            "must be a URL of https://, or of http:// and this machine; "
            "write, for example, https://login.example.com/realms/main"
        )
    return value


PrivateUrl = Annotated[str, AfterValidator(_private_url)]


class Settings(ClientSettings):
    """Settings of the service."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that the service listens on; default: local connections only.",
    )
    port: int = Field(
        default=8080,
        ge=0,
        le=65535,
        description="Port that the service listens on; 0: a free port.",
    )
    write_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="Max time for which a write waits until its record has been read back; then it "
        "returns 202. Also the max time that it waits for other writes.",
    )
    broker_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="Max time to wait for a response of the broker, including the start.",
    )
    start_timeout_seconds: float = Field(
        default=120.0,
        gt=0,
        description="Max time to read the config topic at the start.",
    )
    replication_factor: int = Field(
        default=1, ge=1, le=32767, description="Replicas of the topics that the service creates."
    )
    create_event_topics: bool = Field(
        default=True,
        description="Create the missing topic of a stream, or the missing output topic of a "
        "condition; false: reject the registration.",
    )
    output_topics: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(partial(json_list, example='["siem", "out-*"]'))
    ] = Field(
        default=(),
        description="Topics that conditions may use as output_topic, as a JSON list of names or "
        "of prefixes followed by *. Empty: all topics that no other rule excludes.",
    )
    event_partitions: int = Field(
        default=2,
        ge=1,
        le=10_000,
        description="Partitions of the event, output, alarm, late and dead-letter topics that the "
        "service creates.",
    )
    max_buffered_events: int = Field(
        default=20_000_000,
        ge=1,
        description="Max number of events of a stream that the job buffers for a condition, over "
        "all slots; checked for streams that declare max_rate. An event takes 40 to 60 bytes.",
    )
    max_body_bytes: int = Field(
        default=1_048_576, ge=1024, description="Max size of a request body, in bytes."
    )
    explain_records: int = Field(
        default=100_000,
        ge=1,
        le=100_000_000,
        description="Max number of records read to find an event by its id, or for a sample, the "
        "newest first.",
    )
    explain_seconds: float = Field(
        default=5.0,
        gt=0,
        le=300,
        description="Max time to find events by their ids, or to read a sample, in seconds.",
    )
    recent_alarms: int = Field(
        default=10_000,
        ge=0,
        le=1_000_000,
        description="Max number of alarms of a partition that the service keeps in memory for "
        "`GET /v1/alarms`, the newest; 0: the service does not read alarms.",
    )
    recent_alarms_bytes: int = Field(
        default=67_108_864,
        ge=1_048_576,
        description="Max memory of these alarms, over all topics, in bytes.",
    )
    alarm_readers: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="Max number of live feeds of `GET /v1/alarms`, with access control at most "
        "half of them for one caller; further ones get 503.",
    )
    keys_file: Path | None = Field(
        default=None,
        description="File of API keys, which `coincide keys` writes; set: access control is on.",
    )
    oidc_issuer: PrivateUrl | None = Field(
        default=None,
        description="Issuer of OpenID Connect tokens, an https URL; set: access control is on.",
    )
    oidc_audience: str | None = Field(
        default=None, min_length=1, description="Audience that the tokens must have."
    )
    oidc_jwks_url: PrivateUrl | None = Field(
        default=None,
        description="URL of the issuer's public keys; default: the one that the issuer publishes.",
    )
    oidc_algorithms: Annotated[
        tuple[Algorithm, ...], NoDecode, BeforeValidator(partial(json_list, example='["RS256"]'))
    ] = Field(
        default=("RS256", "ES256"),
        min_length=1,
        description="Algorithms of signatures that are accepted, a JSON list.",
    )
    oidc_roles_claim: str = Field(
        default="roles",
        min_length=1,
        description="Claim that lists the roles of a token; a path with dots for nested claims.",
    )
    oidc_roles: Annotated[
        Mapping[str, str],
        NoDecode,
        BeforeValidator(partial(string_properties, example='{"operators": "admin"}')),
    ] = Field(
        default={it: it for it in ROLE_NAMES},
        description="Roles of the values of this claim, a JSON object: viewer, editor or admin; "
        "editor:PREFIX,PREFIX limits the names that an editor may write.",
    )
    open_to_everyone: bool = Field(
        default=False,
        description="Accept requests of everyone who reaches COINCIDE_HOST, without access "
        "control, although other machines reach it.",
    )
    open_metrics: bool = Field(
        default=False, description="Answer /metrics without credentials, to everyone."
    )
    allowed_hosts: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(partial(json_list, example='["coincide.lan"]'))
    ] = Field(
        default=(),
        description="Names in URLs of the service besides localhost, 127.0.0.1 and [::1], a JSON "
        'list; ["*"]: any name.',
    )
    requests_per_second: float = Field(
        default=100.0,
        ge=0,
        le=1_000_000,
        description="Max number of requests per second of a caller, with access control, or "
        "of an address if the service is open to everyone; 0: no limit.",
    )
    max_connections: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="Max number of open connections, of which one address has at most half.",
    )
    request_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Max time of the handshake of TLS, in which the header of a request must "
        "arrive, and its body, and in which a client reads nothing of an answer.",
    )
    tls_certificate: Path | None = Field(
        default=None, description="Certificate of the service with its chain, PEM; set: https."
    )
    tls_key: Path | None = Field(
        default=None, description="Private key of the certificate, PEM, without a password."
    )
    tls_client_ca: Path | None = Field(
        default=None,
        description="Authorities of client certificates, PEM; set: every client needs one.",
    )
    log_level: str = Field(
        default="info",
        pattern="^(critical|error|warning|info|debug)$",
        description="Min severity that is logged: critical, error, warning, info or debug.",
    )

    @property
    def is_protected(self) -> bool:
        """Whether access control is on."""
        return self.keys_file is not None or self.oidc_issuer is not None

    @field_validator("oidc_roles")
    @classmethod
    def _roles_exist(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for claimed, given in value.items():
            role, colon, prefixes = given.partition(":")
            if role not in ROLE_NAMES or (colon and role != "editor"):
                raise wrong_setting(
                    f"{claimed}: is not a role; write viewer, editor, admin or editor:PREFIX"
                )
            for prefix in prefixes.split(",") if colon else ():
                if NAME.fullmatch(prefix) is None:
                    raise wrong_setting(
                        f"{claimed}: {prefix[:40]!r} is not the beginning of a name; write, for "
                        "example, editor:team-a-"
                    )
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name != ANY_HOST and not allowed_host(name):
                raise wrong_setting(
                    f"{name[:80]!r} is not a host; write names without scheme and port"
                )
        return tuple(allowed_host(name) or name for name in value)

    @field_validator("output_topics")
    @classmethod
    def _output_topics_are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            # The asterisk matches any suffix, including an empty one.
            check_topic(pattern.removesuffix("*") + "x" * pattern.endswith("*"), "output_topics")
        return value
