"""The Spark session, tuned by measurement for small, frequent batches of packed rows."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_client.allocator import ARENAS
from kafka_client.secrets import SENSITIVE_NAMES
from spark_jobs.driver.child_end import end_child
from spark_jobs.driver.early_python import start_early
from spark_jobs.driver.java_archive import JavaArchive, open_archive
from spark_jobs.driver.local_files import use_local_files
from spark_jobs.driver.properties_file import submitted
from spark_jobs.driver.scratch import ScratchFolder, temporary_files_in
from spark_jobs.driver.spark_home import make_spark_home
from spark_jobs.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_jobs.settings import Settings

_NAME = "coincide"
_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NO_JAVA = "JAVA_GATEWAY_EXITED"
_HOME = "SPARK_HOME"
# Properties with environment variables of the workers begin with it.
_VARIABLE = "spark.executorEnv."
# Properties that `spark-submit` passes to Java or needs before the session exists.
_READ_BY_JAVA = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.submit.")
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Driver and executor are one JVM; its direct memory, which Arrow uses, may be as large as its heap.
# With one compilation tier, the JVM starts in two thirds of the CPU time and batches cost half
# during warm-up; at 240,000 events/s the speed is the same (measured on two cores).
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Spark rejects longer paths of the folder of its sockets.
_SOCKET_FOLDER_BYTES = 60
_SHORT = Path("/tmp")  # noqa: S108 - the folder made in it is for its owner only
# A JVM that does not end by itself is killed after this time.
_JAVA_END_SECONDS = 60
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def session_properties(settings: Settings) -> dict[str, str]:
    """Return the Spark properties of the job.

    Parameters
    ----------
    settings : Settings
        Settings of the job.
    """
    properties = {
        # The state store writes and uploads only the changes of a batch.
        "spark.sql.streaming.stateStore.providerClass": _STATE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The driver waits for it when it closes the stores of a failed query.
        "spark.sql.streaming.stateStore.maintenanceShutdownTimeout": "5s",
        # Packed rows are few and large. Arrow's batches of them are limited in bytes: the JVM holds
        # several batches in direct memory, and copies a column while it grows.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
        # The web UI would cost memory and a port.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.metricsEnabled": "false",
        # Recovery needs at most the batch before the newest.
        "spark.sql.streaming.minBatchesToRetain": "20",
        # Workers with warm caches are kept while the job is idle.
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "spark_jobs.worker.worker_daemon",
        "spark.sql.adaptive.enabled": "false",
        # A batch has few rows, with a blob of many records each: interpreting the plan takes less
        # CPU time than compiling it (an idle job with 2 batches/s: 0.44 instead of 0.51 s a
        # second). The second property is an internal one of Spark.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Without a wait, tasks move to an executor that is idle, such as the successor of a lost
        # one. By default Spark waits for the executor that holds the state, batch after batch.
        "spark.locality.wait": "0s",
        # Hadoop sets the modes of its files itself and ignores the umask of the process.
        "spark.hadoop.fs.permissions.umask-mode": settings.umask,
        "spark.redaction.regex": SENSITIVE_NAMES,
        # Executors of a cluster do not inherit it; see `kafka_client.allocator`.
        f"{_VARIABLE}{ARENAS}": os.environ.get(ARENAS, "1"),
    }
    if is_local(settings.checkpoint):
        properties["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    return properties | settings.spark_properties


def _one_process(scratch: Path, sockets: Path, archive: JavaArchive | None) -> dict[str, str]:
    options = f'{_JAVA_OPTIONS} -Djava.io.tmpdir="{scratch}"'
    return {
        # On a TCP port Spark accepts the first client, and waits forever when that client is not
        # its own worker. Other users cannot open the sockets in this folder.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(sockets),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{options} {archive.options}" if archive else options,
        "spark.local.dir": str(scratch),
    }


@contextmanager
def _fast_home(home: Path) -> Iterator[None]:
    """Let Java start with a home folder without archives of Python, unless another is given."""
    if _HOME in os.environ:
        yield
        return
    os.environ[_HOME] = str(make_spark_home(home))
    try:
        yield
    finally:
        del os.environ[_HOME]


def _socket_folder(scratch: Path) -> Path:
    """Return the scratch folder, or a folder with a short path if it is too long for sockets."""
    if len(os.fsencode(scratch)) <= _SOCKET_FOLDER_BYTES:
        return scratch
    return ScratchFolder("s", _SHORT).path


def _interpreter(sockets: Path, environment: Mapping[str, str]) -> str:
    """Return the interpreter for Spark's Python processes on this machine."""
    given = os.environ["PYSPARK_PYTHON"]
    # Processes that are started early have this interpreter.
    return start_early(sockets, environment) if given == sys.executable else given


def _environment(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that properties set for the workers."""
    return {
        name.removeprefix(_VARIABLE): value
        for name, value in properties.items()
        if name.startswith(_VARIABLE)
    }


def _java_did_not_start(error: PySparkException | Py4JJavaError) -> bool:
    return isinstance(error, PySparkException) and error.getCondition() == _NO_JAVA


def _wrong_property(error: PySparkException | Py4JJavaError, settings: Settings) -> str | None:
    """Return a message that names the property that caused the error, or None."""
    given = settings.spark_properties
    if _java_did_not_start(error):
        read_by_java = sorted(name for name in given if name.startswith(_READ_BY_JAVA))
        if not read_by_java:
            return None
        return f"{', '.join(read_by_java)}: Java does not start, see above; correct the value"
    said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    named = sorted((name for name in given if name in str(said)), key=len)
    if not named:
        return None
    return f"{named[-1]}: Spark rejects the value: {said}; correct it, or remove the property"


def is_local(location: str) -> bool:
    """Return whether a folder or URL is on the file system of this machine."""
    return "://" not in location or location.startswith("file:")


def max_tasks(session: SparkSession, slots: int) -> int:
    """Return the number of tasks that evaluate slots at the same time.

    Executors of a cluster register after the session has started, and may be added later: the
    number of their cores is not known, and each slot has its own task.

    Parameters
    ----------
    session : SparkSession
        Session of the job.
    slots : int
        Number of slots.
    """
    context = session.sparkContext
    if not str(context.master).startswith("local"):
        return slots
    # A task costs about 55 ms per batch: use no more than can run in parallel.
    return min(slots, context.defaultParallelism)


def open_session(settings: Settings, workers: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark, or use the session that spark-submit has prepared.

    A JVM that was started here ends with this process, before the temporary files are removed: its
    state stores write files until the end.

    Parameters
    ----------
    settings : Settings
        Settings of the job.
    workers : mapping of str to str or None
        Further environment variables of the Python workers.

    Raises
    ------
    SettingError
        When Spark rejects a property of the settings.
    """
    workers = workers or {}
    # By default Spark starts the system's interpreter, which does not have the job's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    properties = session_properties(settings)
    starting = ExitStack()
    archive = interpreter = None
    # A value set here would override the values of spark-submit, which knows its cluster.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        scratch = ScratchFolder("spark").path
        ours = {"spark.app.name": _NAME, "spark.master": settings.spark_master}
        if settings.spark_master.startswith("local"):
            # Spark resolves its host name before it reads properties; some hosts cannot resolve it.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            archive, sockets = open_archive(settings.java_cache, scratch), _socket_folder(scratch)
            # Processes import their modules while Java starts.
            interpreter = _interpreter(sockets, {**_environment(properties), **workers})
            ours |= {**_LOOPBACK, **_one_process(scratch, sockets, archive)}
            home = archive.home if archive is not None else scratch / "home"
            starting.enter_context(_fast_home(home))
        properties = ours | properties
        starting.enter_context(submitted(properties, scratch))
        # Java writes its port to a file in a temporary folder, which would remain after a kill.
        starting.enter_context(temporary_files_in(scratch))
    try:
        with starting:
            # The builder below would start Java with each property on the command line.
            SparkContext._ensure_initialized()  # noqa: SLF001 - the public ways take no gateway
            gateway = SparkContext._gateway  # noqa: SLF001 - see the line above
            if gateway is not None and gateway.proc is not None:
                # Runs before the scratch folder is removed, which was registered earlier.
                atexit.register(_end_java, gateway.proc, archive)
                use_local_files(gateway, properties)
        builder = SparkSession.builder.appName(_NAME)
        for name, value in properties.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        problem = _wrong_property(error, settings)
        if problem is None:
            if archive is not None and _java_did_not_start(error):
                archive.discard()
            raise
        raise SettingError(f"COINCIDE_SPARK_PROPERTIES: {problem}") from error
    context = session.sparkContext
    context.setLogLevel("ERROR")
    context.environment.update(workers)
    if interpreter is None and str(context.master).startswith("local"):
        folder = _socket_folder(ScratchFolder("forks").path)
        interpreter = _interpreter(folder, context.environment)
    if interpreter is not None:
        context.pythonExec = interpreter
    return session


def _end_java(java: subprocess.Popen[bytes], archive: JavaArchive | None) -> None:
    """End the JVM of this process, wait until it has ended, and close the archive."""
    # PySpark's gateway ends the JVM at the end of its input.
    end_child(java, _JAVA_END_SECONDS)
    if archive is not None:
        archive.close(java.returncode)
