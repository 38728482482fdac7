"""Close the state stores of a query that has ended.

Spark keeps the state stores of an ended query, and its maintenance writes snapshots of their
versions minutes later. If a batch was planned again meanwhile, its version of the state would get
the snapshot of other records. The stores of executors on other machines cannot be closed.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

# A task that was cancelled ends with its Python worker's next rows.
_TASKS_SECONDS = 30.0
_POLL_SECONDS = 0.02


class StateStores:
    """State stores of the queries of this process.

    Parameters
    ----------
    session : SparkSession
        Session of the job.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # Whether nothing writes to the state of an ended query any more.
        self.are_closed = True

    def close(self) -> None:
        """Close the stores of all queries; none may run.

        If this is not possible once, `are_closed` remains false: Spark may keep a store for an
        hour.
        """
        if self.are_closed and not self._close():
            self.are_closed = False

    def _close(self) -> bool:
        context = self._session.sparkContext
        if not str(context.master).startswith("local"):
            return False
        # Spark's Python API knows neither the tasks of an executor nor the stores.
        tracker: Any = context._jsc.sc().statusTracker()  # noqa: SLF001 - see above
        deadline = time.monotonic() + _TASKS_SECONDS
        while any(it.numRunningTasks() for it in tracker.getExecutorInfos()):
            if time.monotonic() >= deadline:
                _log.warning("tasks of the ended query still run")
                return False
            time.sleep(_POLL_SECONDS)
        jvm: Any = self._session._jvm  # noqa: SLF001 - see above
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        return True
