"""Settings of the job, read from the environment once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt
from pydantic_settings import NoDecode

from correlation.limits import SLOTS_LIMIT
from kafka_client.secret_files import MAYBE_SECRET
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


# Start of a job whose checkpoint is empty.
WithoutCheckpoint = Literal["rebuild", "now", "beginning"]
# Many modules import `Properties`, the type of librdkafka properties, from here.
__all__ = ["Properties", "Settings", "WithoutCheckpoint"]

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


def _offsets(value: object) -> Mapping[str, object]:
    """Parse offsets of topics; pydantic checks the numbers."""
    found = json_object(value, example := '{"events": {"0": 100, "1": 250}}')
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise wrong_setting(
                f"{topic}: must be an object of partitions and offsets; write for example {example}"
            )
    return found


class Settings(ClientSettings):
    """Settings of the job."""

    checkpoint: Annotated[
        str,
        Field(
            min_length=1,
            description="Folder or URL of the job's state, on any file system that Spark supports. "
            "A job that restarts with it continues where it stopped.",
        ),
    ] = "checkpoint"
    slots: Annotated[
        int,
        Field(
            ge=1,
            le=SLOTS_LIMIT,
            description="Number of state partitions: the max parallelism; unless "
            "`coincide rescale` has registered another number.",
        ),
    ] = 2
    without_checkpoint: Annotated[
        WithoutCheckpoint,
        Field(
            description="Start of a job whose checkpoint is empty, in an installation that has "
            "written before: rebuild the state from Kafka (rebuild), continue without the buffered "
            "events (now), or read all topics and write their alarms again (beginning)."
        ),
    ] = "rebuild"
    trigger_seconds: Annotated[
        float, Field(ge=0, description="Min time between the starts of two batches, in seconds.")
    ] = 0.2
    max_events_per_batch: Annotated[
        int, Field(ge=1, description="Max number of records read in one batch, over all topics.")
    ] = 400_000
    max_record_bytes: Annotated[
        int,
        Field(
            ge=1, description="Max size of a record, in bytes; longer records are rejected unread."
        ),
    ] = 1_000_000
    java_cache: Annotated[
        Path | None,
        Field(
            description="Folder for Java's classes, 200 MB. A job on one machine stores them at "
            "its end; later starts need less CPU time."
        ),
    ] = None
    until_end: Annotated[
        bool,
        Field(
            description="Read the records that exist at the start, then exit with code 0; false: "
            "continue with new records."
        ),
    ] = False
    until_offsets: Annotated[
        dict[str, dict[NonNegativeInt, NonNegativeInt]],
        NoDecode,
        BeforeValidator(_offsets),
    ] = Field(
        default_factory=dict,
        description="End offsets of event topics, as a JSON object, topic → partition → offset. "
        "The job stops reading there. Other partitions are read completely.",
    )
    heartbeat_seconds: Annotated[
        float,
        Field(gt=0, description="Time between heartbeats of idle partitions, in seconds."),
    ] = 2.0
    stop_seconds: Annotated[
        float,
        Field(
            gt=0,
            description="Max time a stop waits for the running batch, in seconds; a batch that "
            "takes longer is aborted and repeated at the next start.",
        ),
    ] = 20.0
    max_batch_seconds: Annotated[
        float,
        Field(
            gt=0,
            description="Time without a completed batch, while records are unread, after which the "
            "query is restarted with new Python workers, in seconds; counts as a failure.",
        ),
    ] = 1_800.0
    max_failures: Annotated[
        int,
        Field(ge=1, description="Number of consecutive failures after which the job exits."),
    ] = 5
    accept_config_topic: Annotated[
        str | None,
        Field(
            description="Id of a config topic that was created again and replaces the config topic "
            "of the checkpoint; the error message of the job contains it."
        ),
    ] = None
    spark_master: Annotated[
        str, Field(description="Spark master; used if spark-submit does not set one.")
    ] = "local[*]"
    spark_properties: Annotated[
        dict[str, str],
        NoDecode,
        BeforeValidator(_spark_properties),
        MAYBE_SECRET,
    ] = Field(
        default_factory=dict,
        repr=False,
        description="Further Spark properties, as a JSON object; they override other values.",
    )
    umask: Annotated[
        Umask,
        Field(
            description="Permissions removed from files that the job creates, as octal digits: "
            "027 lets the group read."
        ),
    ] = DEFAULT_UMASK

    @property
    def client(self) -> Properties:
        """Properties common to all librdkafka clients of the job."""
        return self.client_properties("coincide-job")

    @property
    def secrets(self) -> Secrets:
        """Values that the job must not write to logs or topics."""
        return Secrets(self.kafka_properties, self.spark_properties)
