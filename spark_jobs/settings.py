"""Settings of the job, read from the environment once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, NonNegativeInt
from pydantic_settings import NoDecode

from correlation.limits import SLOTS_LIMIT
from kafka_client.secrets import Secrets
from kafka_client.settings import (
    DEFAULT_UMASK,
    ClientSettings,
    Properties,
    Umask,
    json_object,
    string_properties,
    wrong_setting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Many modules import `Properties`, the type of librdkafka properties, from here.
__all__ = ["Properties", "Settings"]

# The syntax of Java's -Xmx. Spark checks the other sizes, which have more notations.
_HEAP = re.compile(r"[1-9]\d*[kmgtKMGT]?")


def _spark_properties(value: object) -> dict[str, str]:
    """Parse and check Spark properties."""
    found = string_properties(value, '{"spark.driver.memory": "4g"}')
    for name in found:
        if not name.startswith("spark."):
            raise wrong_setting(
                f'{name}: is not a property of Spark, whose names begin with "spark."; '
                "correct the name or remove it"
            )
    if not _HEAP.fullmatch(found.get("spark.driver.memory", "1g")):
        raise wrong_setting(
            "spark.driver.memory: must be a whole number with the unit k, m, g or t; "
            'write, for example, "4g"'
        )
    return found


def _spark_kafka_properties(value: object) -> dict[str, str]:
    """Parse the properties of Spark's Kafka source; their values are checked in the session."""
    return string_properties(value, '{"security.protocol": "SSL"}')


def _offsets(value: object) -> Mapping[str, object]:
    """Parse offsets of topics; pydantic checks the numbers."""
    found = json_object(value, example := '{"events": {"0": 100, "1": 250}}')
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise wrong_setting(
                f"{topic}: must be an object of partitions and offsets; write one like {example}"
            )
    return found


class Settings(ClientSettings):
    """Settings of the job."""

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
        dict[str, dict[NonNegativeInt, NonNegativeInt]],
        NoDecode,
        BeforeValidator(_offsets),
    ] = Field(
        default_factory=dict,
        description="Records of event topics from these offsets on are passed over: a JSON "
        "object, topic → partition → offset. Partitions that are not named are read whole.",
    )
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
        NoDecode,
        BeforeValidator(_spark_kafka_properties),
    ] = Field(
        default_factory=dict,
        description="Further Kafka properties of Spark's source, a JSON object with the Java "
        "client's names: the same security settings as in KAFKA_PROPERTIES.",
    )
    spark_properties: Annotated[
        dict[str, str],
        NoDecode,
        BeforeValidator(_spark_properties),
    ] = Field(
        default_factory=dict,
        description="Further Spark properties, a JSON object; they win over ours.",
    )
    jars: Annotated[
        Path | None,
        Field(
            description="Folder with the jars of Spark's Kafka connector; none where spark-submit "
            "is given them by --packages or --jars."
        ),
    ] = None
    umask: Annotated[
        Umask,
        Field(
            description="Rights that others do not get on files that the job makes, as octal "
            "digits: 027 lets the group read."
        ),
    ] = DEFAULT_UMASK

    @property
    def client(self) -> Properties:
        """Properties common to all librdkafka clients of the job."""
        return self.client_properties("coincide-job")

    @property
    def secrets(self) -> Secrets:
        """Values that the job must not write to logs or topics."""
        return Secrets(self.kafka_properties, self.spark_kafka_properties, self.spark_properties)
