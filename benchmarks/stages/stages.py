"""The stages of a batch, and the CPU time of each."""

from __future__ import annotations

import re
from collections import Counter

from benchmarks.stages.samples import Samples, Stack

# Stages by the functions of which they consist, in the order of a record's way. The innermost frame
# of a stack that one of the expressions matches decides.
_FUNCTIONS = (
    ("read", r"\(spark_jobs/source/|\(spark_jobs/worker/runs\.py"),
    ("parse", r"\(correlation/parsing/"),
    ("pack", r"\(spark_jobs/worker/(pack|rejects)\.py"),
    ("write alarms", r"SlotEvaluation\._pack |\(correlation/timing/alarm"),
    (
        "store state",
        r"SlotEvaluation\._store |\(spark_jobs/worker/blob_files|\(pyspark/sql/streaming",
    ),
    (
        "evaluate",
        r"\(correlation/(engine|timing|event_query|topk)/|\(spark_jobs/worker/(?!envelope|results)",
    ),
    ("send", r"\(spark_jobs/sink/"),
    ("move: Python's side", r"\(pyspark/|\(pyarrow/"),
)
_PATTERNS = [(stage, re.compile(pattern)) for stage, pattern in _FUNCTIONS]
_DRIVER = re.compile(r"\(spark_jobs/(driver/|main|job)|\(py4j/")
OTHER = "other Python"
# Stages that are threads: process, and what its threads do.
_THREADS = {
    ("python", "client"): "librdkafka's threads: fetch and send",
    ("java", "tasks"): "move: Java's side, with the shuffle and the state store",
    ("java", "plan and commit batches"): "plan and commit batches: Java",
    ("java", "compile"): "compile: Java",
    ("java", "collect garbage"): "collect garbage: Java",
    ("java", "other"): "other Java",
}
_DRIVERS = "plan batches: Python"
STAGES = (
    *(stage for stage, _ in _FUNCTIONS),
    OTHER,
    *_THREADS.values(),
    _DRIVERS,
)


def stage_of(stack: Stack) -> str:
    """Return the stage of a stack of a worker."""
    for frame in reversed(stack):
        for stage, pattern in _PATTERNS:
            if pattern.search(frame):
                return stage
    return OTHER


def is_of_driver(stack: Stack) -> bool:
    """Return whether a stack belongs to the driver."""
    return any(_DRIVER.search(frame) for frame in stack)


def seconds_by_stage(samples: Samples) -> dict[str, float]:
    """Return the CPU seconds of each of `STAGES`.

    The Python threads of the workers are divided in proportion to their samples.
    """
    counts: Counter[str] = Counter()
    for stack, count in samples.stacks.items():
        if not is_of_driver(stack):
            counts[stage_of(stack)] += count
    worked = samples.threads["python", "python"]
    found = {stage: worked * count / counts.total() for stage, count in counts.items()}
    found |= {stage: samples.threads[thread] for thread, stage in _THREADS.items()}
    found[_DRIVERS] = sum(
        seconds for (role, _), seconds in samples.threads.items() if role == "driver"
    )
    return {stage: found.get(stage, 0.0) for stage in STAGES}
