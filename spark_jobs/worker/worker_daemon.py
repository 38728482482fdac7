"""The process from which Spark forks its Python workers, with everything imported once.

Spark starts it as `python -m spark_jobs.worker.worker_daemon MODULE`
(`spark.python.daemon.module`).
Importing takes each worker most of a second; here it is done before the fork, and the memory is
shared. The imported objects are taken out of the garbage collector's sight: Spark collects garbage
after each task, which would walk through all of them, at some 50 ms a task.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

from pyspark.daemon import manager

_WORKERS = "pyspark.worker"
# Of numpy's linear algebra, and of the allocator in Arrow.
_NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
# Names the work of a pool of workers; see `spark_jobs.worker.transform`.
ROLE, SLOTS = "COINCIDE_WORKER_ROLE", "slots"
# The default: the others are loaded when a condition asks for them.
_ALGORITHM = "lazy_lookup"
_MODULES = ("pandas", "pyarrow", "spark_jobs.worker.operator", "spark_jobs.sink.sink")


def main(worker_module: str) -> None:
    """Import what the workers of a kind need, then fork them as Spark asks for them.

    Parameters
    ----------
    worker_module : str
        The kind: those that run functions need our modules, those that plan do not.
    """
    if worker_module == _WORKERS:
        import_all()
        if os.environ.get(ROLE) == SLOTS:
            warm_up()
    gc.collect()
    gc.freeze()
    manager()


def import_all() -> None:
    """Import our modules without a thread being started: a process with threads is not forked."""
    os.environ.update(_NO_THREADS)
    for name in _MODULES:
        importlib.import_module(name)


def warm_up() -> None:
    """Load the kernels of the slots' workers."""
    # Imported with the modules above, when the variables above are set.
    importlib.import_module("spark_jobs.worker.warm_up").warm_up(_ALGORITHM)


if __name__ == "__main__":
    main(sys.argv[1])
