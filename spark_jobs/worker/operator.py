"""The stateful operator, as Spark knows it: one key per slot.

Spark describes the state of an operator in a process of its own, which unpickles the operator and
evaluates nothing. This module therefore has few imports; those of the evaluation take a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from spark_jobs.worker.in_force import InForce
    from spark_jobs.worker.slot_evaluation import SlotEvaluation

_BLOB = StructType([StructField("blob", BinaryType(), nullable=False)])
_NUMBER = StructType([StructField("number", LongType(), nullable=False)])


class SlotProcessor(StatefulProcessor):
    """Advances the program of a slot by the rows of a batch (`SlotEvaluation`).

    Parameters
    ----------
    in_force : InForce
        Streams and slots of this run.
    """

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force
        self._evaluation: SlotEvaluation | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._manifest = handle.getValueState("manifest", _BLOB)
        self._blobs = handle.getMapState("blobs", _NUMBER, _BLOB)

    # Spark defines the name, and a type that covers both forms, rows and frames.
    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,  # noqa: ANN401 - as Spark types it
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Evaluate the rows of a slot."""
        return self._evaluate().advance(int(key[0]), rows)

    # Spark defines the name, and a type that covers both forms, rows and frames.
    def handleInitialState(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,  # noqa: ANN401, ARG002 - as Spark types it; the state is that of the key
        initialState: pd.DataFrame,  # noqa: N803
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> None:
        """Store the initial state of a slot."""
        self._evaluate().store_initial(initialState)

    def close(self) -> None:
        """End the task."""
        if self._evaluation is not None:
            self._evaluation.end_task()

    def _evaluate(self) -> SlotEvaluation:
        if self._evaluation is None:
            from spark_jobs.worker.slot_evaluation import (  # noqa: PLC0415 - see the module
                SlotEvaluation,
            )

            self._evaluation = SlotEvaluation(self._in_force, self._manifest, self._blobs)
        return self._evaluation
