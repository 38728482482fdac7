"""An overtaken transaction: the process gets an error that says so, at each moment."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from service.access.callers import EVERYONE
from service.errors import BusyError, OvertakenError
from service.plane import ControlPlane
from service.transactions import NewRecord, Others, Transactions
from tests.rest.running import fresh_settings
from tests.support.kafka import create_topics, read_committed
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.configuration_writes import ConfigurationWrites
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


@pytest.fixture
def instances(kafka_bootstrap: str) -> Iterator[tuple[ConfigurationWrites, ConfigurationWrites]]:
    """Return the writes of two instances of the service."""
    settings = fresh_settings(kafka_bootstrap)
    with ExitStack() as stack:
        planes = [ControlPlane(settings, lambda: 0) for _ in range(2)]
        for plane in planes:
            stack.callback(plane.stop)
            plane.start()
        first, second = (plane.configuration for plane in planes)
        yield first, second


@pytest.mark.parametrize(("times", "is_written"), [(0, True), (2, True), (100, False)])
def test_overtaken_write_is_repeated_up_to_ten_times(
    instances: tuple[ConfigurationWrites, ConfigurationWrites], times: int, *, is_written: bool
) -> None:
    first, second = instances
    attempts = 0

    def write(instance: ConfigurationWrites) -> int:
        return instance.write([NewRecord(b"template/none", None)], [], EVERYONE, 0)

    def attempt() -> int:
        nonlocal attempts
        attempts += 1
        if attempts <= times:
            second.alone(partial(write, second))
        return write(first)

    if is_written:
        assert first.alone(attempt) >= 0
        assert attempts == times + 1
    else:
        with pytest.raises(BusyError, match=naming("other instances", "nothing was written")):
            first.alone(attempt)
        assert attempts == 10


def _only_the_second_writes(settings: Settings, second: Transactions) -> None:
    second.write([NewRecord(b"key", b"second")], PATIENCE_SECONDS)
    found = read_committed(settings.bootstrap, settings.topics.config)
    assert [it.value for it in found] == [b"second"]
