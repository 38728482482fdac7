"""Settings of the command line, read from the environment once; options of a command win."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from correlation.resources.topics import Topics
from kafka_client.settings import DEFAULT_UMASK, KafkaProperties, Properties, Umask


class Settings(BaseSettings):
    """What the command line needs to know; each field is read from `COINCIDE_` + its name."""

    model_config = SettingsConfigDict(env_prefix="COINCIDE_", frozen=True, extra="ignore")

    bootstrap: str = Field(
        default="127.0.0.1:9092",
        min_length=1,
        description="Addresses of Kafka brokers, host:port with commas between.",
    )
    prefix: str = Field(
        default="coincide",
        description="Put before the names of Coincide's own topics, with a dot.",
    )
    kafka_properties: KafkaProperties = Field(
        default_factory=dict,
        description="More librdkafka properties for every client, as a JSON object.",
    )
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
    def topics(self) -> Topics:
        """Names of Coincide's own topics."""
        return Topics(self.prefix)

    @property
    def client(self) -> Properties:
        """Properties common to all librdkafka clients of the command line."""
        return {
            "bootstrap.servers": self.bootstrap,
            # Errors are shown by the commands; the client would repeat every failed connection.
            "log_level": 2,
            **self.kafka_properties,
        }
