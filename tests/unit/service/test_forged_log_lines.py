"""Keys of config records cannot forge lines in the logs of the service and of the job."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from kafka_client.secrets import HidingFormatter, Secrets
from service.log import LogRecord
from service.registry import Registry
from spark_jobs.driver import config_watch
from spark_jobs.driver.config_watch import ConfigWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_KEY = b"stream/x\n2026-01-01 00:00:00,000 INFO service.access: ada signed in\x1b[31m"
_SHOWN = r"stream/x\n2026-01-01 00:00:00,000 INFO service.access: ada signed in\x1b[31m, cannot"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return the output of the log, in the form of the processes."""
    found = io.StringIO()
    handler = logging.StreamHandler(found)
    handler.setFormatter(HidingFormatter(_FORMAT, Secrets()))
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


def read_in_the_service(_patch: pytest.MonkeyPatch) -> None:
    registry = Registry(10**9)
    registry.follow()
    registry.apply(LogRecord(5, _KEY, b"{}", 0))


def read_in_the_job(patch: pytest.MonkeyPatch) -> None:
    record = SimpleNamespace(key=lambda: _KEY, value=lambda: b"{}", offset=lambda: 5)
    consumer = SimpleNamespace(
        assign=lambda _: None, consume=lambda _, timeout: [record] if timeout else [], user=None
    )
    patch.setattr(config_watch, "open_consumer", lambda *_: consumer)
    patch.setattr(config_watch, "is_record", lambda *_: True)
    ConfigWatch({}, "coincide.config").poll(0.1)


@pytest.mark.parametrize("read", [read_in_the_service, read_in_the_job])
def test_key_of_a_record_forges_no_line(
    read: Callable[[pytest.MonkeyPatch], None],
    logged: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read(monkeypatch)
    (line,) = logged.getvalue().splitlines()
    assert line.isprintable()
    assert _SHOWN in line
