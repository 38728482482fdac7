"""Due times of events, and combinations of options."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cli.client.events import EventSender, at_rate, at_recorded_times, send_lines
from cli.client.produce import ProduceOptions
from cli.errors import UsageError


def test_at_rate_spreads_events_evenly() -> None:
    due = at_rate(4)
    assert [due(number, b"") for number in range(3)] == [0.0, 0.25, 0.5]


class SlowSender(EventSender):
    """Sends nothing; connecting for the first record takes 5 s of a clock that only it moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sent_at: list[float] = []

    def wait(self, seconds: float) -> None:
        self.now += max(seconds, 0)

    def send(self, topic: str, key: bytes | None, value: bytes) -> None:  # noqa: ARG002 - as typed
        if not self.sent_at:
            self.now += 5
        self.sent_at.append(self.now)


def test_pace_counts_from_the_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = SlowSender()
    monkeypatch.setattr("cli.client.events.time.monotonic", lambda: sender.now)
    lines = [b"1", b"", b"2", b"3"]
    assert list(send_lines(sender, "t", lines, schedule=at_rate(4))) == [1, 0, 1, 1]
    assert sender.sent_at == [105.0, 105.25, 105.5]


def test_at_recorded_times_follows_the_times_at_the_given_speed() -> None:
    def read(value: bytes) -> int | None:
        found = orjson.loads(value)
        return found if isinstance(found, int) else None

    due = at_recorded_times(read, factor=2)
    assert [due(0, b"null"), due(1, b"1000000"), due(2, b"3000000"), due(3, b"{}")] == [
        0.0,
        0.0,
        1.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either --topic or --stream"),
        ({"topic": "t", "stream": "s"}, "either --topic or --stream"),
        ({"stream": "s", "rate": 1.0, "speed": 1.0}, "cannot be combined"),
        ({"topic": "t", "speed": 1.0}, "--speed requires --stream"),
    ],
)
def test_produce_options_refuse_what_does_not_go_together(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ProduceOptions(file="events.jsonl", **options)  # type: ignore[arg-type]  # a table of cases


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "file of events"),
        ({"closes": ("s",), "rate": 1.0}, "require a file"),
        ({"closes": ("s",), "stream": "s"}, "require a file"),
    ],
)
def test_options_without_a_file_only_close_streams(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ProduceOptions(None, **options)
    assert ProduceOptions(None, closes=("s",)).closes == ("s",)
