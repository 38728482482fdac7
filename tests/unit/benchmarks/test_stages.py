"""CPU time of the job is divided among the stages of a batch."""

from __future__ import annotations

import pytest
from matplotlib.patches import Rectangle

from benchmarks.stages.flame import draw_flames
from benchmarks.stages.samples import Samples, read_stacks
from benchmarks.stages.stages import OTHER, STAGES, seconds_by_stage, stage_of

_AROUND = "worker (pyspark/daemon.py:1);main (pyspark/worker.py:2)"
_PACK = f"{_AROUND};pack_records (spark_jobs/worker/pack.py:3)"
_TEXT = f"""\
process 1:"python -m spark_jobs.main";thread (1): MainThread;run (spark_jobs/main.py:9) 7
process 1:"python";thread (2): MainThread;{_PACK};_take (spark_jobs/source/range_reader.py:4) 2
process 1:"python";thread (2): MainThread;{_PACK};_take (spark_jobs/source/range_reader.py:5) 1
process 1:"python";thread (2): MainThread;{_PACK};from_list (correlation/buffers/columns.py:6) 3
process 1:"python";thread (2): MainThread;f (somewhere/else.py:6) 2
process 1:"python";thread (2): MainThread 1
"""


def test_lines_of_a_function_are_added_up_and_stacks_without_functions_left_out() -> None:
    found = read_stacks(_TEXT)
    assert sum(found.values()) == 15
    assert [count for stack, count in found.items() if "_take" in stack[-1]] == [3]


@pytest.mark.parametrize(
    ("stage", "frames"),
    [
        ("read", ("pack_records (spark_jobs/worker/pack.py)", "of (spark_jobs/worker/runs.py)")),
        ("parse", ("_read (spark_jobs/worker/pack.py)", "loads (correlation/parsing/intake.py)")),
        ("pack", ("_spread (spark_jobs/worker/pack.py)", "take (correlation/buffers/columns.py)")),
        (
            "evaluate",
            (
                "advance (spark_jobs/worker/slot_evaluation.py)",
                "advance (correlation/engine/program.py)",
                "take (correlation/buffers/columns.py)",
            ),
        ),
        (
            "write alarms",
            (
                "find (correlation/timing/operator.py)",
                "Alarms.write (correlation/timing/alarm_writing.py)",
            ),
        ),
        ("write alarms", ("SlotEvaluation._pack (spark_jobs/worker/slot_evaluation.py)",)),
        (
            "store state",
            (
                "SlotEvaluation._store (spark_jobs/worker/slot_evaluation.py)",
                "update (pyspark/sql/streaming/map_state_client.py)",
            ),
        ),
        (
            "send",
            (
                "TransactionalProducer._send (spark_jobs/sink/transactional_producer.py)",
                "unpack_records (spark_jobs/worker/envelope.py)",
                "RecordColumns.values (correlation/record_columns.py)",
            ),
        ),
        ("move: Python's side", ("load_stream (pyspark/sql/pandas/serializers.py)",)),
        (OTHER, ("f (somewhere/else.py)",)),
    ],
)
def test_the_innermost_function_that_belongs_to_a_stage_decides(
    stage: str, frames: tuple[str, ...]
) -> None:
    assert stage_of(frames) == stage


def test_the_time_of_python_threads_is_divided_by_samples_of_the_workers() -> None:
    samples = Samples(1.0, 12.0, stacks=read_stacks(_TEXT))
    samples.threads["python", "python"] = 8.0
    samples.threads["java", "tasks"] = 3.0
    samples.threads["driver", "python"] = 1.0
    found = seconds_by_stage(samples)
    assert list(found) == list(STAGES)
    assert (found["read"], found["pack"], found[OTHER]) == (3.0, 3.0, 2.0)
    assert sum(found.values()) == 12.0


def test_functions_are_as_wide_as_their_samples() -> None:
    axis = draw_flames(Samples(stacks=read_stacks(_TEXT))).axes[0]
    boxes = [it for it in axis.patches if isinstance(it, Rectangle) and it.get_y() >= 0]
    assert sorted(round(it.get_width(), 3) for it in boxes) == [0.25, 0.375, 0.375, 0.75]
