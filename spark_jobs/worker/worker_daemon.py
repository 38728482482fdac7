"""The daemon process from which Spark forks its Python workers, with all modules imported once.

Spark starts it as `python -m spark_jobs.worker.worker_daemon MODULE`
(`spark.python.daemon.module`). Imports would take each worker most of a second. The daemon imports
before the fork, and the workers share the memory; it also loads the kernels that they need first.
The imported objects are frozen in the garbage collector: Spark collects garbage after each task,
and scanning them would take about 50 ms a task.

On the driver's machine, the first daemons are ready before Spark starts them. The driver starts a
process with the further arguments of `ROLES`, the descriptors of a socket for each. It imports the
modules of all roles once and forks a daemon for each. A daemon waits for the client that Spark
starts (`spark_jobs.worker.fork_client`), and takes its place. All end with the driver, at the end
of their standard input.
"""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.daemon import manager

from spark_jobs.worker.fork_request import receive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.worker.fork_request import Received

WORKERS = "pyspark.worker"
# Disables the threads of numpy's linear algebra and of Arrow's allocator.
NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
# Environment variable with the role of a pool of workers; see `spark_jobs.worker.transform`.
ROLE, SLOTS = "COINCIDE_WORKER_ROLE", "slots"
ROLES = ("", SLOTS)
# Environment variable with the kinds of conditions whose kernels are loaded, separated by commas.
# Without it, as in a job that starts without conditions, those of all kinds are loaded.
WARM_KINDS = "COINCIDE_WORKER_KINDS"
# Environment variable with the number of times that all workers were replaced; see
# `spark_jobs.driver.workers`.
GENERATION = "COINCIDE_WORKER_GENERATION"
_COMMON = ("pyspark.worker", "pyarrow", "spark_jobs.worker.pack")
# Modules of workers that evaluate slots, and of those that read and write records.
_EVALUATING = ("pandas", "spark_jobs.worker.slot_evaluation")
_MOVING = (
    "spark_jobs.source.source",
    "spark_jobs.source.range_reader",
    "spark_jobs.sink.sink",
    "spark_jobs.sink.batches",
)


def main(worker_module: str, *descriptors: str) -> None:
    """Import the modules that the workers need, then fork workers on Spark's requests.

    Parameters
    ----------
    worker_module : str
        Module of the workers. Only workers that run functions need the job's modules.
    *descriptors : str
        If Spark has not started this process: descriptors of sockets on which the daemons of
        `ROLES` wait for their clients.
    """
    if descriptors:
        # An interrupted driver ends the daemons when it has stopped the query.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    roles = ROLES if descriptors else (os.environ.get(ROLE, ""),)
    if worker_module == WORKERS:
        for role in roles:
            import_all(role)
        for role in roles:
            warm_up(role, os.environ.get(WARM_KINDS, ""))
    gc.collect()
    gc.freeze()
    if not descriptors or take_place([socket.socket(fileno=int(it)) for it in descriptors]):
        manager()


def take_place(listeners: Sequence[socket.socket]) -> bool:
    """Fork a process for each socket, and let it take the place of the first client.

    Parameters
    ----------
    listeners : sequence of socket
        Sockets on which clients connect.

    Returns
    -------
    bool
        True in a forked process, when a client has connected. False in one without a client, at
        the end of the standard input, and in this process, when the others have ended.
    """
    own = next((it for it in listeners if not os.fork()), None)
    for it in listeners:
        if it is not own:
            it.close()
    if own is None:
        # They are children of a process without work: a crash of one leaves the others in the
        # driver's family.
        for _ in listeners:
            os.wait()
        return False
    with own:
        received = _wait(own)
    if received is None:
        return False
    received.take_streams()
    received.close_streams()
    received.request.apply()
    os.environ.update(NO_THREADS)
    # Without its client, the daemon finds the end of its input.
    with suppress(OSError):
        received.client.sendall(b"+")
    # The client ends when this process and its workers have ended.
    received.client.detach()
    return True


def _wait(listener: socket.socket) -> Received | None:
    """Wait for a request; None at the end of the standard input."""
    with selectors.DefaultSelector() as selector:
        for it in (sys.stdin, listener):
            selector.register(it, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if sys.stdin in ready:
                return None
            if (received := receive(listener)) is not None:
                return received


def import_all(role: str) -> None:
    """Import the job's modules without starting threads, since forking threads is not safe.

    Parameters
    ----------
    role : str
        `SLOTS` for workers that evaluate slots; others read and write records.
    """
    os.environ.update(NO_THREADS)
    for name in (*_COMMON, *(_EVALUATING if role == SLOTS else _MOVING)):
        importlib.import_module(name)
    # Each worker calls it at its start; the first call imports a package.
    importlib.invalidate_caches()


def warm_up(role: str, kinds: str) -> None:
    """Load the kernels of the workers' first batch; others are loaded when they are used.

    Parameters
    ----------
    role : str
        See `import_all`.
    kinds : str
        Value of `WARM_KINDS`. The kernels of their default algorithms are loaded.
    """
    # Imported late, after the modules and environment variables above are set.
    if role == SLOTS:
        module = importlib.import_module("spark_jobs.worker.warm_up")
        module.warm_up("defaults", kinds=frozenset(kinds.split(",")) if kinds else None)
    else:
        importlib.import_module("spark_jobs.worker.pack").warm_up()


if __name__ == "__main__":
    main(*sys.argv[1:])
