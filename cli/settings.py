"""Settings of the command line, read from the environment once; options of a command win."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from kafka_client.settings import DEFAULT_UMASK, ClientSettings, Properties, Umask


class Settings(ClientSettings):
    """What the command line needs to know."""

    url: str = Field(
        default="http://127.0.0.1:8080",
        description="Where the service is, for apply, produce, explain and doctor.",
    )
    jars: Path = Field(
        default=Path(".cache/jars"),
        description="Folder of the Java archives; fetched into it where missing, unless it has "
        "them already (a site without a network brings its own).",
    )
    ivy_settings: Path | None = Field(
        default=None, description="Own settings file for Ivy, where a site has its own mirror."
    )
    max_record_bytes: int = Field(
        default=1_000_000,
        ge=1,
        description="A longer row of a file is rejected by replay, as by the job, in bytes.",
    )
    data: Path = Field(
        default=Path(".coincide"),
        description="Folder of the local stack: the broker's data, the checkpoint, the logs.",
    )
    umask: Umask = Field(
        default=DEFAULT_UMASK,
        description="Rights that others do not get on files that `up` makes, as octal digits.",
    )

    @property
    def client(self) -> Properties:
        """Properties common to all librdkafka clients of the command line."""
        return self.client_properties("coincide-cli")
