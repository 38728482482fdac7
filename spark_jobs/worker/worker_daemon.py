"""The daemon process from which Spark forks its Python workers, with all modules imported once.

Spark starts it as `python -m spark_jobs.worker.worker_daemon MODULE`
(`spark.python.daemon.module`). Imports would take each worker most of a second. The daemon imports
before the fork, and the workers share the memory; it also loads the kernels that they need first.
The imported objects are frozen in the garbage collector: Spark collects garbage after each task,
and scanning them would take about 50 ms a task.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

from pyspark.daemon import manager

_WORKERS = "pyspark.worker"
# Disables the threads of numpy's linear algebra and of Arrow's allocator.
NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
# Environment variable with the role of a pool of workers; see `spark_jobs.worker.transform`.
ROLE, SLOTS = "COINCIDE_WORKER_ROLE", "slots"
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


def main(worker_module: str) -> None:
    """Import the modules that the workers need, then fork workers on Spark's requests.

    Parameters
    ----------
    worker_module : str
        Module of the workers. Only workers that run functions need the job's modules.
    """
    if worker_module == _WORKERS:
        role = os.environ.get(ROLE, "")
        import_all(role)
        warm_up(role, os.environ.get(WARM_KINDS, ""))
    gc.collect()
    gc.freeze()
    manager()


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
    main(sys.argv[1])
