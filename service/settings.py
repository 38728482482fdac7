"""Settings of the service, read from the environment once (prefix COINCIDE_)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from correlation.resources.checks import check_topic
from correlation.resources.topics import Topics
from kafka_client.settings import BootstrapServers, KafkaProperties, Properties, json_list

# A prefix leaves room for the longest name below it (".dead-letter") in Kafka's 249.
_PREFIX_LENGTH = 200


class Settings(BaseSettings):
    """Every setting of the service; `COINCIDE_` and the name in capitals is its variable."""

    model_config = SettingsConfigDict(env_prefix="COINCIDE_", frozen=True)

    bootstrap: BootstrapServers = Field(
        default="127.0.0.1:9092",
        description="Addresses of Kafka brokers, host:port with commas between.",
    )
    prefix: str = Field(
        default="coincide",
        max_length=_PREFIX_LENGTH,
        description="Put before the names of Coincide's own topics, with a dot.",
    )
    kafka_properties: KafkaProperties = Field(
        default_factory=dict,
        description="More librdkafka properties for every client, as a JSON object "
        "(security.protocol, sasl.username, ...).",
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the service listens on; the default is this machine only.",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port the service listens on; 0 takes a free one."
    )
    write_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="How long a write waits until its own record was read back; "
        "afterwards it answers 202. Also how long it waits for its turn.",
    )
    broker_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="How long the service waits for an answer of the broker, also at its start.",
    )
    start_timeout_seconds: float = Field(
        default=120.0,
        gt=0,
        description="How long reading the config topic may take at start.",
    )
    replication_factor: int = Field(
        default=1, ge=1, le=32767, description="Replicas of the topics that the service creates."
    )
    create_event_topics: bool = Field(
        default=True,
        description="Create the topic of a stream (or a condition's output topic) that does "
        "not exist yet; otherwise registering it is refused.",
    )
    output_topics: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(partial(json_list, example='["siem", "out-*"]'))
    ] = Field(
        default=(),
        description="Topics that conditions may name as output_topic, as a JSON list: names, or "
        "their begin and *. Empty: any that no rule forbids.",
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
        description="Most events of a stream, over all slots, that a condition may have the job "
        "keep; checked for streams that declare max_rate. Some 40 to 60 bytes each.",
    )
    max_body_bytes: int = Field(
        default=1_048_576, ge=1024, description="Longest request body that is read, in bytes."
    )
    explain_records: int = Field(
        default=100_000,
        ge=1,
        le=100_000_000,
        description="Most records of a topic that are read to find an event by its id: the newest.",
    )
    explain_seconds: float = Field(
        default=5.0,
        gt=0,
        le=300,
        description="How long finding events by their ids may take, in seconds.",
    )
    log_level: str = Field(
        default="info",
        pattern="^(critical|error|warning|info|debug)$",
        description="Least severity that is logged: critical, error, warning, info or debug.",
    )

    @field_validator("prefix")
    @classmethod
    def _prefix_names_topics(cls, value: str) -> str:
        return check_topic(value, "prefix")

    @field_validator("output_topics")
    @classmethod
    def _output_topics_are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            # The asterisk matches any rest of a name, also an empty one.
            check_topic(pattern.removesuffix("*") + "x" * pattern.endswith("*"), "output_topics")
        return value

    @property
    def topics(self) -> Topics:
        """Names of Coincide's own topics."""
        return Topics(self.prefix)

    def client_properties(self, client_id: str) -> Properties:
        """Properties of a librdkafka client.

        Parameters
        ----------
        client_id : str
            Shown in the broker's logs.
        """
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": client_id,
            # The service logs what matters itself; librdkafka repeats every failed connection.
            "log_level": 2,
            **self.kafka_properties,
        }
