"""Ctrl-C during calls of extension modules."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt also where a call of an extension module disguised it.

    A signal handler that raises inside such a call leaves its exception behind the result, which
    Python reports as a SystemError from it. Seen in ``create_topics`` of confluent-kafka.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
