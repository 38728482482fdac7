"""The Spark session, set up as measured for small and frequent batches of packed rows."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from spark_jobs.settings import Settings

_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Driver and executor are one JVM; its direct memory, where Arrow works, may equal its heap.
# Compiled once and lightly, the JVM starts in two thirds of the CPU time, batches cost half while
# it warms up, and at 240,000 events/s it makes no difference any more (measured on two cores).
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
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
        "spark.python.daemon.module": "spark_jobs.worker_daemon",
        "spark.sql.adaptive.enabled": "false",
    }
    if is_local(settings.checkpoint):
        properties["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    if settings.jars is not None:
        # The folder itself, or that of the command line, which has the broker's beside ours.
        ours = settings.jars / "spark"
        folder = ours if ours.is_dir() else settings.jars
        jars = sorted(str(jar) for jar in folder.glob("*.jar"))
        properties["spark.jars"] = ",".join(jars)
    return properties | settings.spark_properties


def _one_process(scratch: str) -> dict[str, str]:
    return {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f'{_JAVA_OPTIONS} -Djava.io.tmpdir="{scratch}"',
        "spark.local.dir": scratch,
    }


def _scratch_folder() -> str:
    """Make a folder for what Spark and its libraries unpack; it goes with this process."""
    folder = tempfile.mkdtemp(prefix="coincide-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def is_local(location: str) -> bool:
    """Tell whether a folder or URL is on this machine's own file system."""
    return "://" not in location or location.startswith("file:")


def open_session(settings: Settings) -> SparkSession:
    """Start Spark, or take the session that spark-submit has prepared.

    Parameters
    ----------
    settings : Settings
        Of the job.
    """
    # Spark would start the system's interpreter, which has none of our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("coincide")
    properties = session_properties(settings)
    # A value set here would win over those of spark-submit, which knows its cluster.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(settings.spark_master)
        if settings.spark_master.startswith("local"):
            # Spark looks its host's own name up before it reads a property; not every host has one.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            properties = {**_LOOPBACK, **_one_process(_scratch_folder()), **properties}
    for name, value in properties.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
