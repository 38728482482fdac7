"""Arenas of the C library in processes of the service and the job."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Allocates in threads that run at the same time, and writes glibc's account of its arenas.
_PROGRAM = """
import ctypes, sys, threading
import MODULE
from kafka_client.allocator import use_one_arena
if sys.argv[1] == "one":
    use_one_arena()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
together = threading.Barrier(4)
def allocate():
    together.wait()
    libc.malloc(100_000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(4)]
for it in threads: it.start()
for it in threads: it.join()
libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stream)
libc.fflush(stream)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")
@pytest.mark.parametrize("module", ["service.main", "spark_jobs.main"])
def test_threads_share_one_arena_if_no_number_is_set(module: str) -> None:
    # A thread that an import has started may have another one.
    assert arenas(module, "one") <= 2
    assert arenas(module, "one", MALLOC_ARENA_MAX="3") == 3
    assert arenas(module, "several") > 3


def arenas(module: str, number: str, **environment: str) -> int:
    """Return the number of arenas that a process with threads has used."""
    # The command is this test's own.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _PROGRAM.replace("MODULE", module), number],
        capture_output=True,
        check=True,
        text=True,
        env=environment,
    )
    return done.stdout.count("<heap nr=")
