"""Replace Python workers that hang, and stop a query whose workers hang.

Spark keeps a pool of workers for each environment, and with it idle workers that do not answer. It
asks one of them to abort a batch, and one lock covers the start of all workers: a single worker or
daemon that hangs can block the stop of the query, and every later query. All workers and daemons on
the driver's machine are therefore killed, and later functions get another environment: also on
other machines Spark then starts a new daemon, and does not use the former pool again.

A killed worker is a crash: the next run repeats the batch, and a transaction that it has begun is
aborted by the producer that replaces it.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from spark_jobs.worker import worker_daemon

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
_ASK_SECONDS = 5.0
# Time for the stop of a query whose workers were killed.
_KILLED_SECONDS = 60.0


def replace_workers(session: SparkSession) -> None:
    """Kill the Python workers on this machine; functions created from now on get new ones.

    Parameters
    ----------
    session : SparkSession
        Session of the job.
    """
    environment = session.sparkContext.environment
    name = worker_daemon.GENERATION
    environment[name] = str(int(environment.get(name, "0")) + 1)
    kill_workers(session)


def kill_workers(session: SparkSession) -> None:
    """Kill the Python workers on this machine, and the daemons that fork them.

    Parameters
    ----------
    session : SparkSession
        Session of the job.
    """
    # Workers are descendants of the driver or, with spark-submit, the driver and they of the JVM.
    # Java knows them on every operating system.
    jvm: Any = session._jvm  # noqa: SLF001 - see above
    handle = jvm.java.lang.ProcessHandle
    killed = set()
    for root in (handle.current(), handle.of(os.getpid()).get()):
        for process in root.descendants().toArray():
            if worker_daemon.__name__ in process.info().commandLine().orElse(""):
                process.destroyForcibly()
                killed.add(process.pid())
    _log.warning("%d processes of Python workers were killed", len(killed))


def stop_query(
    session: SparkSession, query: StreamingQuery, seconds: float, may_wait: Callable[[], bool]
) -> None:
    """Stop a query; kill its workers on this machine when it does not stop in time.

    Parameters
    ----------
    session : SparkSession
        Session that runs the query.
    query : StreamingQuery
        The query.
    seconds : float
        Time after which the workers are killed.
    may_wait : callable
        Called every few seconds; returns False when the workers must be killed at once.

    Raises
    ------
    Py4JJavaError
        When the query does not stop without its workers either.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            _stop(session, query, _ASK_SECONDS)
        except Py4JJavaError:
            if may_wait():
                continue
            break
        return
    _log.error("the query does not stop")
    kill_workers(session)
    _stop(session, query, _KILLED_SECONDS)


def _stop(session: SparkSession, query: StreamingQuery, seconds: float) -> None:
    # Spark reads the property when it stops a query, and raises an error after this time.
    session.conf.set(_STOP_TIMEOUT, str(int(seconds * 1_000)))
    query.stop()
