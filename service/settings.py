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
        description="Max time to wait for a response of the broker, also at the start.",
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
        description="Max number of live streams of `GET /v1/alarms`; further ones get 503.",
    )
    log_level: str = Field(
        default="info",
        pattern="^(critical|error|warning|info|debug)$",
        description="Min severity that is logged: critical, error, warning, info or debug.",
    )

    @field_validator("output_topics")
    @classmethod
    def _output_topics_are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            # The asterisk matches any suffix, also an empty one.
            check_topic(pattern.removesuffix("*") + "x" * pattern.endswith("*"), "output_topics")
        return value
