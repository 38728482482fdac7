"""Errors of the thread that reads results: what callers see, and what the log shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from service.alarms.following import _FAILED, Follower
from service.settings import Settings
from tests.support.patience import wait_until

if TYPE_CHECKING:
    import pytest

    from service.alarms.memory import RecentRecords


def test_text_of_an_exception_is_in_the_log_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topics = frozenset({"t"})
    memory = cast("RecentRecords", None)
    settings = Settings(broker_timeout_seconds=0.01)
    follower = Follower(settings, lambda: topics, memory, lambda: None)
    follower.state.keep(topics)

    def fail() -> None:
        raise OSError("/etc/coincide/ca.pem cannot be read")

    monkeypatch.setattr(follower, "_follow", fail)
    follower.start()
    try:
        wait_until(lambda: follower.state.problems() == {"t": _FAILED})
    finally:
        follower.stop()
    assert "reading alarms of t: OSError: /etc/coincide/ca.pem cannot be read" in caplog.text
