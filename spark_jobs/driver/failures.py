"""Classify errors of Spark: failures of the checkpoint's store, stale checkpoints, lost claims.

The query uses Hadoop's file systems for its checkpoint only. An I/O error raised inside them is
therefore an error of the checkpoint's store. An I/O error raised elsewhere (a dead worker, a
shuffle file) is not.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError

from spark_jobs.errors import CheckpointStoreError, ClaimLostError, StaleCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.query import StreamingQuery

_FILE_SYSTEMS = "org.apache.hadoop.fs."
_IO_ERROR = "java.io.IOException"


@contextmanager
def naming_store(gateway: Any, location: str) -> Iterator[None]:  # noqa: ANN401 - Py4J has no types
    """Raise CheckpointStoreError in place of an I/O error of the checkpoint's store.

    Parameters
    ----------
    gateway : JavaGateway
        Gateway to the JVM that raises the error.
    location : str
        Folder or URL of the checkpoint.
    """
    try:
        yield
    except Py4JJavaError as error:
        cause = _store_cause(gateway, error.java_exception)
        if cause is None:
            raise
        raise CheckpointStoreError(location, cause) from error
    except OSError as error:
        cause = f"{type(error).__name__}: {error.strerror}"
        raise CheckpointStoreError(location, cause) from error


def query_error(gateway: Any, query: StreamingQuery, location: str) -> Exception | None:  # noqa: ANN401 - Py4J has no types
    """Return the error with which a query ended, or None when it has not failed.

    Parameters
    ----------
    gateway : JavaGateway
        Gateway to the JVM of the query.
    query : StreamingQuery
        The query, which has ended.
    location : str
        Folder or URL of the checkpoint.

    Returns
    -------
    CheckpointStoreError, ClaimLostError, StaleCheckpointError, StreamingQueryException or None
        StreamingQueryException for all errors that are not one of the first three.
    """
    raised = query.exception()
    if raised is None:
        return None
    # Python receives the message of the outermost exception only.
    thrown = query._jsq.exception().get()  # noqa: SLF001 - see above
    for one in _chain(thrown):
        # The exception of a worker arrives as a traceback in the message.
        text = one.getMessage() or ""
        own = StaleCheckpointError.from_text(text) or ClaimLostError.from_text(text)
        if own is not None:
            return own
    cause = _store_cause(gateway, thrown)
    return raised if cause is None else CheckpointStoreError(location, cause)


def _store_cause(gateway: Any, thrown: Any) -> str | None:  # noqa: ANN401 - objects of the JVM
    """Return the error message of the store, or None when the store did not cause the error."""
    cause = None
    for one in _chain(thrown):
        if is_instance_of(gateway, one, _IO_ERROR) and any(
            frame.getClassName().startswith(_FILE_SYSTEMS) for frame in one.getStackTrace()
        ):
            cause = f"{one.getClass().getSimpleName()}: {one.getMessage() or 'no details'}"
    return cause


def _chain(thrown: Any) -> Iterator[Any]:  # noqa: ANN401 - objects of the JVM
    """Yield an exception, then its causes."""
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()
