"""Settings of the service, read from the environment once (prefix COINCIDE_)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from correlation.resources.checks import check_topic
from kafka_client.settings import ClientSettings, json_list


class Settings(ClientSettings):
    """Settings of the service."""

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

    @field_validator("output_topics")
    @classmethod
    def _output_topics_are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            # The asterisk matches any suffix, also an empty one.
            check_topic(pattern.removesuffix("*") + "x" * pattern.endswith("*"), "output_topics")
        return value
