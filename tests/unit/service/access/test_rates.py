"""Token buckets: rate, burst, and bounded memory."""

from __future__ import annotations

import pytest

from service.access.rates import RateLimit, network_of


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_burst_is_allowed_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(2.0, 4, clock)
    assert [limit.take("a") for _ in range(6)] == [0, 0, 0, 0, 1, 1]
    clock.seconds += 0.5
    assert [limit.take("a") for _ in range(2)] == [0, 1]
    clock.seconds += 3600
    assert [limit.take("a") for _ in range(5)] == [0, 0, 0, 0, 1]


def test_wait_is_the_time_until_a_request_is_allowed() -> None:
    clock = Clock()
    limit = RateLimit(0.1, 1, clock)
    assert limit.take("a") == 0
    assert limit.take("a") == 10
    clock.seconds += 9
    assert limit.take("a") == 1
    clock.seconds += 1
    assert limit.take("a") == 0


def test_callers_have_their_own_buckets() -> None:
    limit = RateLimit(1.0, 1, Clock())
    assert [limit.take(it) for it in ("a", "b", "a", "b")] == [0, 0, 1, 1]


def test_zero_is_no_limit() -> None:
    limit = RateLimit(0, 0, Clock())
    assert {limit.take("a") for _ in range(1000)} == {0}


def test_memory_is_bounded_and_recent_callers_are_kept() -> None:
    limit = RateLimit(1.0, 1, Clock(), callers=3)
    for caller in ("a", "b", "c", "a", "d"):
        limit.take(caller)
    # b was the least recently seen.
    assert [limit.take(it) for it in ("a", "c", "d")] == [1, 1, 1]
    assert limit.take("b") == 0


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("unknown", "unknown", True),
    ],
)
def test_subscribers_of_ipv6_are_counted_by_network(one: str, other: str, *, equal: bool) -> None:
    assert (network_of(one) == network_of(other)) is equal
