"""Settings of the command line, read from the environment once; options override them."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError

from cli.errors import UsageError
from kafka_client.secret_files import MAYBE_SECRET
from kafka_client.settings import (
    DEFAULT_UMASK,
    ClientSettings,
    Properties,
    Umask,
    wrong_setting,
)


def _service_url(value: str) -> str:
    """Check the URL of the service; it may contain a password, so messages do not repeat it."""
    try:
        found = urlsplit(value)
        # Access to `port` validates it.
        complete = found.scheme in {"http", "https"} and found.hostname and found.port != 0
    except ValueError:
        complete = False
    if not complete or found.query or found.fragment:
        raise wrong_setting(
            "must be a URL of http:// or https://, a host and, where needed, a port; "
            "write, for example, http://127.0.0.1:8080"
        )
    return value


def shown_url(url: str) -> str:
    """Return a URL without the user name and password that it may contain."""
    netloc = urlsplit(url).netloc
    return url.replace(netloc, netloc.rpartition("@")[2], 1)


class Settings(ClientSettings):
    """Settings of the command line."""

    url: Annotated[str, AfterValidator(_service_url), MAYBE_SECRET] = Field(
        default="http://127.0.0.1:8080",
        repr=False,
        description="URL of the service, for all commands that send requests to it.",
    )
    api_key: Annotated[SecretStr | None, MAYBE_SECRET] = Field(
        default=None,
        description="API key, or token, that commands send to the service.",
    )
    ca_file: Path | None = Field(
        default=None,
        description="Certificates, PEM, that commands trust for https, instead of the system's.",
    )
    client_timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Timeout of a request to the service, in seconds. Without it: 30, and 300 for "
        "validate, diff and apply.",
    )
    keys_file: Path | None = Field(
        default=None, description="File of API keys, which `coincide keys` writes."
    )
    jars: Path = Field(
        default=Path(".cache/jars"),
        description="Folder of the Java archives; missing archives are fetched into it. A site "
        "without a network provides a folder with all of them.",
    )
    ivy_settings: Path | None = Field(
        default=None, description="Settings file for Ivy, for Java archives from a mirror."
    )
    max_record_bytes: int = Field(
        default=1_000_000,
        ge=1,
        description="Max size of a row, in bytes; replay rejects longer rows, as the job does.",
    )
    data: Path = Field(
        default=Path(".coincide"),
        description="Folder of the local stack: the broker's data, the checkpoint, the logs.",
    )
    umask: Umask = Field(
        default=DEFAULT_UMASK,
        description="Permissions removed from files that `up` creates, as octal digits.",
    )

    @property
    def client(self) -> Properties:
        """Properties of all librdkafka clients of the command line."""
        return self.client_properties("coincide-cli")


def read_settings(**options: str | None) -> Settings:
    """Read the settings from the environment and the options of a command.

    Parameters
    ----------
    **options
        Options by the names of their settings; None if an option is not given.

    Raises
    ------
    UsageError
        The value of an option is not valid; the message names the option.
    ValidationError
        A variable is not valid.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            name = str(found["loc"][0])
            if name in given:
                raise UsageError(f"--{name}: {found['msg']}") from None
        raise


def options_to(settings: Settings, *names: str) -> str:
    """Return the options with which another command uses the same addresses.

    Parameters
    ----------
    settings
        Settings of this command.
    *names
        Settings that are options of the other command.

    Returns
    -------
    str
        The options, each after a space; empty if the environment has the same addresses.
    """
    try:
        found = Settings().model_dump()
    except ValidationError:
        # A variable is not valid, and an option of this command overrides it.
        found = {}
    chosen = {name: getattr(settings, name) for name in names}
    return "".join(
        f" --{name} {quote(shown_url(value) if name == 'url' else value)}"
        for name, value in chosen.items()
        if value != found.get(name)
    )
