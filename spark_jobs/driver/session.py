"""The Spark session, set up as measured for small and frequent batches of packed rows."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_client.secrets import SENSITIVE_NAMES
from spark_jobs.driver.jars import CONNECTOR, verified
from spark_jobs.driver.properties_file import submitted
from spark_jobs.driver.scratch import ScratchFolder, temporary_files_in
from spark_jobs.errors import SettingError

if TYPE_CHECKING:
    from spark_jobs.settings import Settings

_NAME = "coincide"
_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NO_JAVA = "JAVA_GATEWAY_EXITED"
# What `spark-submit` hands to Java, or needs before the session is there.
_READ_BY_JAVA = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.submit.")
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Driver and executor are one JVM; its direct memory, where Arrow works, may equal its heap.
# Compiled once and lightly, the JVM starts in two thirds of the CPU time, batches cost half while
# it warms up, and at 240,000 events/s it makes no difference any more (measured on two cores).
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The kernel takes 107 bytes for a socket's path, and Spark's names of sockets have 42.
_SOCKET_FOLDER_BYTES = 64
_SHORT = Path("/tmp")  # noqa: S108 - the folder made in it is for its owner only
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def session_properties(settings: Settings) -> dict[str, str]:
    """Give the Spark properties of the job.

    Parameters
    ----------
    settings : Settings
        Of the job.
    """
    properties = {
        # State: only the changes of a batch are written, and uploaded as they are.
        "spark.sql.streaming.stateStore.providerClass": _STATE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Rows are packed: few, large. 200,000 records a batch cost the least each.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        # Large records close a batch sooner: the JVM holds a few such batches in direct memory, and
        # while a column grows there are two copies of it.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
        # A page that nobody looks at costs memory and a port.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.metricsEnabled": "false",
        # Only the batch before the last is ever needed again.
        "spark.sql.streaming.minBatchesToRetain": "20",
        # A worker whose caches are warm is kept while the job is idle.
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "spark_jobs.worker.worker_daemon",
        "spark.sql.adaptive.enabled": "false",
        # Hadoop sets the modes of its files itself, whatever the umask of the process.
        "spark.hadoop.fs.permissions.umask-mode": settings.umask,
        "spark.redaction.regex": SENSITIVE_NAMES,
    }
    if is_local(settings.checkpoint):
        properties["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    if settings.jars is not None:
        # The folder itself, or that of the command line, which has the broker's beside ours.
        ours = settings.jars / "spark"
        folder = ours if ours.is_dir() else settings.jars
        properties["spark.jars"] = ",".join(map(str, verified(folder, CONNECTOR)))
    return properties | settings.spark_properties


def _one_process(scratch: Path) -> dict[str, str]:
    return {
        # At a TCP port Spark serves the first client that connects, and waits for ever when that is
        # not its own worker. Nobody else can open the sockets in this folder.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(_socket_folder(scratch)),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f'{_JAVA_OPTIONS} -Djava.io.tmpdir="{scratch}"',
        "spark.local.dir": str(scratch),
    }


def _socket_folder(scratch: Path) -> Path:
    """Return the scratch folder, or one with a short name where its own is too long for sockets."""
    if len(os.fsencode(scratch)) <= _SOCKET_FOLDER_BYTES:
        return scratch
    return ScratchFolder("s", _SHORT).path


def _wrong_property(error: PySparkException | Py4JJavaError, settings: Settings) -> str | None:
    """Return a sentence about the property of the settings that the error is about, if any is."""
    given = settings.spark_properties
    if isinstance(error, PySparkException) and error.getCondition() == _NO_JAVA:
        read_by_java = sorted(name for name in given if name.startswith(_READ_BY_JAVA))
        if not read_by_java:
            return None
        return (
            f"{', '.join(read_by_java)}: Java, whose message is above, does not start; correct it"
        )
    said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    named = sorted((name for name in given if name in str(said)), key=len)
    if not named:
        return None
    return f"{named[-1]}: Spark does not take the value: {said}; correct it, or remove the property"


def is_local(location: str) -> bool:
    """Tell whether a folder or URL is on this machine's own file system."""
    return "://" not in location or location.startswith("file:")


def open_session(settings: Settings) -> SparkSession:
    """Start Spark, or take the session that spark-submit has prepared.

    Parameters
    ----------
    settings : Settings
        Of the job.

    Raises
    ------
    SettingError
        Spark does not take a property of the settings.
    """
    # Spark would start the system's interpreter, which has none of our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    properties = session_properties(settings)
    starting = ExitStack()
    # A value set here would win over those of spark-submit, which knows its cluster.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        scratch = ScratchFolder("spark").path
        ours = {"spark.app.name": _NAME, "spark.master": settings.spark_master}
        if settings.spark_master.startswith("local"):
            # Spark looks its host's own name up before it reads a property; not every host has one.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            ours |= {**_LOOPBACK, **_one_process(scratch)}
        properties = ours | properties
        starting.enter_context(submitted(properties, scratch))
        # Java tells its port in a file of a temporary folder, which a kill would leave behind.
        starting.enter_context(temporary_files_in(scratch))
    try:
        with starting:
            # Started as by the builder below, which would write each property on the command line.
            SparkContext._ensure_initialized()  # noqa: SLF001 - the public ways take no gateway
        builder = SparkSession.builder.appName(_NAME)
        for name, value in properties.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        problem = _wrong_property(error, settings)
        if problem is None:
            raise
        raise SettingError(f"COINCIDE_SPARK_PROPERTIES: {problem}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session
