"""Close the state stores of a query that has ended.

Spark keeps the state stores of an ended query, and its maintenance writes snapshots of their
versions minutes later. If a batch was planned again meanwhile, its version of the state would get
the snapshot of other records. The stores of executors on other machines cannot be closed.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

# A cancelled task ends when its Python worker returns the next rows.
_TASKS_SECONDS = 30.0
_POLL_SECONDS = 0.1


class StateStores:
    """State stores of the queries of this process.

    Parameters
    ----------
    session : SparkSession
        Session of the job.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def close(self, may_wait: Callable[[], bool]) -> bool:
        """Close the stores of all queries, none of which may run.

        Parameters
        ----------
        may_wait : callable
            Called while tasks still run; returns False when the wait must end.

        Returns
        -------
        bool
            True if no task writes to the state of an ended query any more.
        """
        context = self._session.sparkContext
        if not str(context.master).startswith("local"):
            return False
        try:
            return self._close(context, may_wait)
        except Py4JError as error:
            _log.warning("the state stores could not be closed: %s", error)
            return False

    def _close(self, context: SparkContext, may_wait: Callable[[], bool]) -> bool:
        # Spark's Python API knows neither running tasks nor the stores. The scheduler itself is
        # asked, because the listeners that serve the web page learn of the end of a task later.
        scheduler: Any = context._jsc.sc().taskScheduler()  # noqa: SLF001 - see above
        deadline = time.monotonic() + _TASKS_SECONDS
        while _runs_tasks(scheduler):
            if time.monotonic() >= deadline or not may_wait():
                _log.warning("tasks of the ended query still run")
                return False
            time.sleep(_POLL_SECONDS)
        jvm: Any = self._session._jvm  # noqa: SLF001 - see above
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        return True


def _runs_tasks(scheduler: Any) -> bool:  # noqa: ANN401 - an object of Java
    numbers = scheduler.runningTasksByExecutors().valuesIterator()
    running = 0
    while numbers.hasNext():
        running += numbers.next()
    return running > 0
