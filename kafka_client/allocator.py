"""Memory of the C library, in processes whose Kafka clients have many threads."""

from __future__ import annotations

import ctypes
import os
import sys

ARENAS = "MALLOC_ARENA_MAX"
# Of `malloc.h` of glibc.
_M_ARENA_MAX = -8


def use_one_arena() -> None:
    """Let all threads of this process and of its children allocate from one arena of glibc.

    By default glibc makes up to eight arenas for each core, and the memory that was freed in one is
    not used by the others. Other libraries are not affected, and a value of the environment
    variable `MALLOC_ARENA_MAX` is respected. Must be called before threads are started.
    """
    if sys.platform != "linux" or ARENAS in os.environ:
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
    os.environ[ARENAS] = "1"
