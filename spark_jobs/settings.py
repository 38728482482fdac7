"""Settings of the job, read from the environment once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from correlation.limits import SLOTS_LIMIT
from correlation.topics import Topics

Properties = dict[str, str | int | float | bool]


class Settings(BaseSettings):
    """What the job needs to know; each field is read from `COINCIDE_` + its name."""

    model_config = SettingsConfigDict(env_prefix="COINCIDE_", frozen=True, extra="ignore")

    bootstrap: Annotated[
        str, Field(description="Kafka bootstrap servers, host:port separated by commas.")
    ] = "127.0.0.1:9092"
    prefix: Annotated[
        str, Field(description="Put before the name of each of the installation's topics.")
    ] = "coincide"
    kafka_properties: Annotated[
        Properties,
        Field(description="Further librdkafka properties, a JSON object: security, for example."),
    ] = {}
    checkpoint: Annotated[
        str,
        Field(
            min_length=1,
            description="Folder or URL of the job's state: local, or any file system that Spark "
            "reaches. A job that starts again with it goes on where it stopped.",
        ),
    ] = "checkpoint"
    slots: Annotated[
        int,
        Field(
            ge=1,
            le=SLOTS_LIMIT,
            description="Units of state: the greatest parallelism of this checkpoint, fixed by it.",
        ),
    ] = 2
    trigger_seconds: Annotated[
        float, Field(ge=0, description="Least time between the starts of two batches, in seconds.")
    ] = 0.2
    max_events_per_batch: Annotated[
        int, Field(ge=1, description="Most records read in one batch, over all topics.")
    ] = 400_000
    max_record_bytes: Annotated[
        int,
        Field(ge=1, description="A longer record goes to the dead letter unread, in bytes."),
    ] = 1_000_000
    until_end: Annotated[
        bool,
        Field(
            description="Read what stands in the topics when the job starts, and end with exit "
            "code 0; otherwise the job goes on with what comes."
        ),
    ] = False
    until_offsets: Annotated[
        dict[str, dict[int, int]],
        Field(
            description="Records of event topics from these offsets on are passed over: a JSON "
            "object, topic → partition → offset. Partitions that are not named are read whole."
        ),
    ] = {}
    heartbeat_seconds: Annotated[
        float,
        Field(gt=0, description="Time between heartbeats of idle partitions, in seconds."),
    ] = 2.0
    stop_seconds: Annotated[
        float,
        Field(
            gt=0,
            description="How long a stop waits for the running batch, in seconds; a batch that "
            "takes longer is given up and done again at the next start.",
        ),
    ] = 20.0
    max_failures: Annotated[
        int,
        Field(ge=1, description="The job ends after so many failures without a batch between."),
    ] = 5
    accept_config_topic: Annotated[
        str | None,
        Field(
            description="Id of a config topic that was created again and takes the place of the "
            "one that the checkpoint goes with; the job names it when it refuses the topic."
        ),
    ] = None
    spark_master: Annotated[
        str, Field(description="Spark master, where spark-submit has not given one.")
    ] = "local[*]"
    spark_kafka_properties: Annotated[
        dict[str, str],
        Field(
            description="Further Kafka properties of Spark's source, a JSON object with the Java "
            "client's names: the same security settings as in KAFKA_PROPERTIES."
        ),
    ] = {}
    spark_properties: Annotated[
        dict[str, str],
        Field(description="Further Spark properties, a JSON object; they win over ours."),
    ] = {}
    jars: Annotated[
        Path | None,
        Field(
            description="Folder with the jars of Spark's Kafka connector; none where spark-submit "
            "is given them by --packages or --jars."
        ),
    ] = None

    @property
    def topics(self) -> Topics:
        """The installation's topics."""
        return Topics(self.prefix)

    @property
    def client(self) -> Properties:
        """Properties common to all librdkafka clients of the job."""
        return {"bootstrap.servers": self.bootstrap, **self.kafka_properties}
