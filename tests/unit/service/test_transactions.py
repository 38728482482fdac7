"""When the service opens another transactional producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.settings import Settings
from service.transactions import NewRecord, Transactions

if TYPE_CHECKING:
    from collections.abc import Callable


class FakeProducer:
    """A producer that Kafka answers at once."""

    def begin_transaction(self) -> None:
        pass

    def produce(self, *_: object, on_delivery: Callable[..., None], **__: object) -> None:
        on_delivery(None, FakeMessage())

    def flush(self, _: float) -> int:
        return 0

    def commit_transaction(self, _: float) -> None:
        pass


class FakeMessage:
    """A delivered record."""

    def offset(self) -> int:
        return 7


class Counted(Transactions):
    """Transactions that count their producers."""

    opened = 0

    def _open(self, timeout_seconds: float) -> Any:  # noqa: ANN401, ARG002 - as typed
        self.opened += 1
        return FakeProducer()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock of the service, which a test moves."""
    found = [1_000.0]
    monkeypatch.setattr("service.transactions.time.monotonic", lambda: found[0])
    return found


def test_a_producer_that_was_not_used_for_a_minute_is_replaced(now: list[float]) -> None:
    transactions = Counted(Settings(prefix="p"), "p.config")
    transactions.begin()
    now[0] += 59
    transactions.begin()
    assert transactions.opened == 1
    transactions.write([NewRecord(b"k", b"v")], 10)
    now[0] += 59
    transactions.begin()
    assert transactions.opened == 1
    now[0] += 2
    transactions.begin()
    assert transactions.opened == 2


def test_a_write_does_not_overtake_a_process_that_began_after_its_begin(now: list[float]) -> None:
    transactions = Counted(Settings(prefix="p"), "p.config")
    transactions.begin()
    now[0] += 300
    assert transactions.write([NewRecord(b"k", b"v")], 10) == 7
    assert transactions.opened == 1
