"""Types of the records of the topics of heartbeats, metrics and state.

The slot's record is written by `Program` (`Totals`, `Conditions`, `Watermarks`, `ContractFacts`);
the job's record by spark_jobs.driver.reports, heartbeats by `heartbeat_to_record`.
"""

from __future__ import annotations

from correlation.config_records import MAX_LISTED
from correlation.engine.contract import BUCKETS_SECONDS
from correlation.engine.heartbeats import READ_UP_TO
from correlation.limits import TIME_LIMIT_US
from correlation.reasons import Reason
from correlation.resources.record_types import FILTER, RESOURCE_NAME
from correlation.resources.records import VERSION
from correlation.resources.schemas import (
    ANY_OBJECT,
    COUNT,
    INTEGER,
    NULL,
    NUMBER,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    Schema,
    choice,
    constant,
    described,
    headers_of,
    list_of,
    map_of,
    nullable,
    object_of,
    tuple_of,
)
from correlation.resources.topics import OMITTED_BYTES, OMITTED_HEADER

HEARTBEATS, METRICS, STATE = "heartbeats", "metrics", "state"
# States of the job, and of a condition in a slot.
JOB_STATES = (
    "starting",
    "running",
    "stalled",
    "restarting",
    "failing",
    "stopping",
    "stopped",
    "failed",
)
CONDITION_STATES = ("running", "paused", "waiting", "failed", "unreadable")
_OPTIONAL_TIME: Schema = {"type": ["integer", "null"], "description": "Time in µs; null: none yet."}
_LABELS = map_of(STRING)
_PARTITION: Schema = {"pattern": "^[0-9]+$"}
_BY_PARTITION = described(
    map_of(map_of(COUNT, _PARTITION)), "Number of records, by topic and partition."
)


def _heartbeat(read_up_to: Schema) -> Schema:
    fields: dict[str, Schema] = {
        "v": constant(VERSION),
        "stream": described(RESOURCE_NAME, "Name of the stream."),
        "partition": described(nullable(COUNT), "Partition; null or missing: all."),
        "read_up_to": read_up_to,
        "offset": described(
            nullable(COUNT), "Offset up to which the partition must be read first; null: none."
        ),
    }
    return object_of(fields, ["v", "partition", "offset"])


HEARTBEAT = RecordType(
    "heartbeat",
    "Statement that a partition of a stream has been read up to a time.",
    _heartbeat(
        described(
            {
                "anyOf": [
                    {"type": "integer", "minimum": -TIME_LIMIT_US, "maximum": TIME_LIMIT_US},
                    choice(READ_UP_TO),
                ]
            },
            "Time in µs since 1970; end: closes the partition; reset: unknown from now on.",
        )
    ),
    "The name of the stream.",
    topic=HEARTBEATS,
)
_SPREAD = nullable(
    list_of(
        INTEGER,
        minItems=len(BUCKETS_SECONDS) + 3,
        maxItems=len(BUCKETS_SECONDS) + 3,
        description="Min and max in µs, then the number of values in each bucket.",
    )
)
_LIMITS = ("min_uncertainty_us", "max_uncertainty_us", "min_length_us", "max_length_us")
_DECLARED: dict[str, Schema] = {
    **dict.fromkeys(_LIMITS, nullable(INTEGER)),
    "max_delay_us": COUNT,
    "clock": STRING,
    "spread_us": nullable(COUNT),
    "attributes": ANY_OBJECT,
    "where": FILTER,
    "tokens": STRING,
}
_CONTRACT: dict[str, Schema] = {
    "declared": object_of(_DECLARED, [*_LIMITS, "attributes", "where", "tokens"]),
    "events": COUNT,
    "late": COUNT,
    "rejected": map_of(COUNT, choice([it.value for it in Reason])),
    "near": described(map_of(COUNT), "Number of events within a tenth of each limit."),
    "lengths": _SPREAD,
    "delays": _SPREAD,
}
_CONDITION: dict[str, Schema] = {
    "version": COUNT,
    "state": choice(CONDITION_STATES),
    "detail": nullable(STRING),
    "config_offset": INTEGER,
    "last_alarm_at": _OPTIONAL_TIME,
}
_WATERMARK: dict[str, Schema] = {
    "watermark": _OPTIONAL_TIME,
    "refused_heartbeats": COUNT,
    "partitions": map_of(_OPTIONAL_TIME, _PARTITION),
}
_BUCKETS: dict[str, Schema] = {
    "buckets": list_of(tuple_of({"type": ["number", "string"]}, COUNT)),
    "sum": NUMBER,
}
_SLOT: dict[str, Schema] = {
    "v": constant(VERSION),
    "at": described(TIME_US, "Time of the batch, in µs."),
    "config_offset": described(INTEGER, "Offset of the newest config record applied; -1: none."),
    "counters": described(
        list_of(tuple_of(STRING, _LABELS, COUNT)), "Name, labels and total since the slot began."
    ),
    "histograms": described(
        list_of(tuple_of(STRING, _LABELS, object_of(_BUCKETS))),
        "Name, labels and cumulative buckets: upper bound in seconds, or +Inf, and number.",
    ),
    "contracts": described(
        map_of(object_of(_CONTRACT), RESOURCE_NAME), "Observations of each stream."
    ),
    "gauges": described(
        list_of(tuple_of(STRING, _LABELS, NUMBER)), "Name, labels and value after the batch."
    ),
    "conditions": map_of(object_of(_CONDITION)),
    "watermarks": map_of(object_of(_WATERMARK), RESOURCE_NAME),
    "slot": described(COUNT, "Number of the slot, from 0."),
    "slots": described(POSITIVE, "Number of slots of the checkpoint."),
}
SLOT = RecordType(
    "slot_metrics",
    "Totals and facts of a slot after a batch; the newest record of a key is sufficient.",
    object_of(_SLOT),
    "slot/NUMBER",
    topic=METRICS,
)
_MERGED: dict[str, Schema] = {
    "v": constant(VERSION),
    "at": described(TIME_US, "Time of the batch, in µs."),
    **{name: _SLOT[name] for name in ("counters", "histograms", "gauges")},
    "last_alarm_at": described(
        map_of(TIME_US), "Time of the last merged result of each condition, in µs."
    ),
}
MERGED = RecordType(
    "merged_metrics",
    "Totals and gauges of conditions whose results are merged from all slots, such as top-k lists "
    "of a grid with several groups.",
    object_of(_MERGED),
    "merged",
    topic=METRICS,
)
REMOVED_MERGED = RecordType(
    "removed_merged_metrics",
    "All topics are read from their beginning.",
    NULL,
    "merged",
    topic=METRICS,
)
_JOB: dict[str, Schema] = {
    "v": constant(VERSION),
    "at": described(TIME_US, "Time of the record, in µs."),
    "checkpoint": described(nullable(STRING), "Id of the checkpoint."),
    "claim": described(nullable(COUNT), "Number of the job's claim; later claims are larger."),
    "query_id": described(nullable(STRING), "Id of the Spark query."),
    "batch": described(nullable(COUNT), "Number of the newest batch."),
    "state": choice(JOB_STATES),
    "input_rate": described(nullable(NUMBER), "Records read per second."),
    "batch_events": described(nullable(COUNT), "Records of the newest batch."),
    "lag": _BY_PARTITION,
    "last_batch_at": described(
        nullable(TIME_US), "Time of the last completed batch, in µs; null: none yet."
    ),
    "durations": described(map_of(NUMBER), "Seconds of the newest batch, by phase."),
    "memory": described(
        map_of(COUNT, choice(("driver", "java", "workers"))),
        "Bytes of the job's processes on the machine of its driver; empty: not known.",
    ),
    "exception": described(nullable(STRING), "Last exception that stopped the query."),
    "slots": described(nullable(POSITIVE), "Number of slots; null: not known yet."),
    "wanted_slots": described(nullable(POSITIVE), "Requested number of slots."),
    "slots_problem": described(
        nullable(STRING), "Reason why the job cannot have the wanted number of slots now."
    ),
    "applied_config_offset": nullable(INTEGER),
    "streams": list_of(RESOURCE_NAME, description="Streams that are read."),
    "waiting_streams": list_of(RESOURCE_NAME, description="Streams without a topic."),
    "lost": described(nullable(_BY_PARTITION), "Lost records; null: not known yet."),
    "missing_topics": list_of(STRING, description="Output topics that do not exist."),
    "unreadable_records": list_of(
        object_of({"key": STRING, "offset": COUNT, "problem": STRING}),
        maxItems=MAX_LISTED,
        description="First unreadable records of the config topic.",
    ),
    "unreadable_records_total": COUNT,
    "recreated_topics": map_of(object_of({"former_id": STRING, "id": STRING, "at": TIME_US})),
}
JOB = RecordType("job_metrics", "State of the job.", object_of(_JOB), "job", topic=METRICS)
_POSITION: dict[str, Schema] = {
    "v": constant(VERSION),
    "checkpoint": described(STRING, "Id of the checkpoint."),
    "slots": described(POSITIVE, "Number of slots of the checkpoint."),
    "config_topic_id": described(nullable(STRING), "Id of the config topic; null: not known."),
    "positions": described(
        map_of(map_of(COUNT, _PARTITION)), "Offset of the next record, by topic and partition."
    ),
    "program": described(
        ANY_OBJECT,
        "Watermarks, sources of the buffered events and states of the operators; the fields may "
        "change.",
    ),
}
POSITION = RecordType(
    "slot_position",
    "Position of a slot after a batch, from which the job continues without its checkpoint.",
    object_of(_POSITION),
    "GENERATION/SLOT",
    topic=STATE,
)
_TOTALS: dict[str, Schema] = {
    "v": constant(VERSION),
    "conditions": described(list_of({}), "Conditions of the slot; the items may change."),
    "set_aside": described(
        list_of({}), "Conditions that the slot has set aside; the items may change."
    ),
    "totals": described(ANY_OBJECT, "Totals since the slot began; the fields may change."),
}
TOTALS = RecordType(
    "slot_totals",
    "Conditions and totals of a slot after a batch.",
    object_of(_TOTALS, ["set_aside"]),
    "GENERATION/SLOT/totals",
    topic=STATE,
)
_MARK: dict[str, Schema] = {
    "v": constant(VERSION),
    "group": described(
        STRING, "Consumer group whose committed offset is the same mark: PREFIX.QUERY.PARTITION."
    ),
    "next_batch": described(POSITIVE, "Number of the first batch that is not written yet."),
}
MARK = RecordType(
    "batch_mark",
    "The newest batch that a partition of the job's output has written, in the same transaction.",
    object_of(_MARK),
    "PREFIX.sink.PARTITION or PREFIX.sink.merged",
    topic=STATE,
)
_KEPT_SHARES: dict[str, Schema] = {
    **_MARK,
    "query": described(STRING, "Id of the query."),
    "checkpoint": described(STRING, "Id of the checkpoint."),
    "at": described(COUNT, "Time of the record, in µs since 1970."),
    "format": described(POSITIVE, "Version of the shares."),
    "ahead": described(
        STRING,
        "Id of the former query with whose shares those of a first batch are merged; may be empty.",
    ),
    "shares": described(
        list_of(STRING), "Share of each slot in merged results, in Base64; the content may change."
    ),
}
KEPT_SHARES = RecordType(
    "slot_shares",
    "Shares of the slots of a partition of the job's output in the merged results of a batch. A "
    "job without a checkpoint merges them if they were not merged.",
    object_of(_KEPT_SHARES),
    "PREFIX.QUERY.PARTITION.shares",
    topic=STATE,
)
_MERGED_TOTALS: dict[str, Schema] = {
    **_MARK,
    "merged": described(
        ANY_OBJECT,
        "Totals of merged results, in which the batches before `next_batch` are counted; the "
        "fields may change.",
    ),
}
MERGED_TOTALS = RecordType(
    "merged_totals",
    "Totals of merged results, in the transaction of the batch that they contain.",
    object_of(_MERGED_TOTALS),
    "PREFIX.sink.merged.totals",
    topic=STATE,
)
_TOO_LARGE: dict[str, Schema] = {
    "v": constant(VERSION),
    "checkpoint": STRING,
    "slots": POSITIVE,
    **{name: _MARK[name] for name in ("group", "next_batch")},
    **{name: _KEPT_SHARES[name] for name in ("query", "at", "format", "ahead")},
    "error": constant(Reason.TOO_LARGE.value),
    "omitted_bytes": COUNT,
}
OMITTED_STATE = RecordType(
    "omitted_slot_state",
    "Position, totals or shares that exceed the size limit of the topic. Without position and "
    "totals of a slot, the job cannot be rebuilt; totals of merged results begin again; without "
    "shares, changes of merged results may be lost with the checkpoint.",
    object_of(
        _TOO_LARGE,
        ["checkpoint", "slots", "group", "next_batch", "query", "at", "format", "ahead"],
    ),
    "GENERATION/SLOT, GENERATION/SLOT/totals, PREFIX.sink.merged.totals or "
    "PREFIX.QUERY.PARTITION.shares",
    headers_of({OMITTED_HEADER: OMITTED_BYTES}),
    topic=STATE,
)
REMOVED_STATE = RecordType(
    "removed_slot_state",
    "The generation of the slot, or the query of the shares, was replaced.",
    NULL,
    "GENERATION/SLOT, GENERATION/SLOT/totals or PREFIX.QUERY.PARTITION.shares",
    topic=STATE,
)
