"""An overtaken transaction: the process gets an error that says so, at each moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.errors import OvertakenError
from service.transactions import NewRecord, Others, Transactions
from tests.rest.running import fresh_settings
from tests.support.kafka import create_topics, read_committed
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.settings import Settings

pytestmark = pytest.mark.kafka
MANY = 50


class BeforeRecord(list[NewRecord]):
    """Records, with a call before the record at a place."""

    def __init__(self, place: int, call: Callable[[], None]) -> None:
        super().__init__(NewRecord(b"key", b"%d" % number) for number in range(MANY))
        self._place = place
        self._call = call

    def __iter__(self) -> Iterator[NewRecord]:
        for place, record in enumerate(super().__iter__()):
            if place == self._place:
                self._call()
            yield record


@pytest.fixture
def settings(kafka_bootstrap: str) -> Settings:
    """Return settings whose config topic exists."""
    found = fresh_settings(kafka_bootstrap)
    create_topics(kafka_bootstrap, {found.topics.config: 1})
    return found


@pytest.mark.parametrize("place", [0, 1, MANY - 1])
def test_process_is_overtaken_while_it_sends_records(settings: Settings, place: int) -> None:
    first, second = (Transactions(settings, settings.topics.config) for _ in range(2))
    first.begin()
    with pytest.raises(OvertakenError, match="nothing was written"):
        first.write(BeforeRecord(place, second.begin), PATIENCE_SECONDS)
    _only_the_second_writes(settings, second)


def test_process_is_overtaken_before_it_commits(settings: Settings) -> None:
    first, second = (Transactions(settings, settings.topics.config) for _ in range(2))

    def overtake(_: object) -> list[NewRecord]:
        second.begin()
        return []

    with pytest.raises(OvertakenError, match="nothing was written"):
        first.write([NewRecord(b"key", b"0")], PATIENCE_SECONDS, Others("none", overtake))
    _only_the_second_writes(settings, second)


def test_overtaken_process_may_begin_again(settings: Settings) -> None:
    first, second = (Transactions(settings, settings.topics.config) for _ in range(2))
    first.begin()
    second.begin()
    with pytest.raises(OvertakenError):
        first.write([NewRecord(b"key", b"0")], PATIENCE_SECONDS)
    first.begin()
    assert first.write([NewRecord(b"key", b"1")], PATIENCE_SECONDS) >= 0
    with pytest.raises(OvertakenError):
        second.write([NewRecord(b"key", b"2")], PATIENCE_SECONDS)
    assert [it.value for it in read_committed(settings.bootstrap, settings.topics.config)] == [b"1"]


def _only_the_second_writes(settings: Settings, second: Transactions) -> None:
    second.write([NewRecord(b"key", b"second")], PATIENCE_SECONDS)
    found = read_committed(settings.bootstrap, settings.topics.config)
    assert [it.value for it in found] == [b"second"]
