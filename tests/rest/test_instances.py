"""Two instances of the service that write at the same time: each write is checked against all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Barrier
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.rest.running import fresh_settings, running
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
ROUNDS = 30


class Instances(NamedTuple):
    """Clients of two instances with the same topics, and threads for their requests."""

    first: httpx.Client
    second: httpx.Client
    pool: ThreadPoolExecutor

    def at_once(self, *requests: Callable[[], httpx.Response]) -> list[httpx.Response]:
        """Send requests at the same time; return their answers in order."""
        barrier = Barrier(len(requests))

        def send(request: Callable[[], httpx.Response]) -> httpx.Response:
            barrier.wait()
            return request()

        return [it.result() for it in [self.pool.submit(send, it) for it in requests]]

    def equal(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of both instances, once both have read all records."""
        wait_until(lambda: self.first.get(path).json() == self.second.get(path).json())
        return self.first.get(path).json()


@pytest.fixture(scope="module")
def instances(kafka_bootstrap: str) -> Iterator[Instances]:
    """Run two instances of the service."""
    settings = fresh_settings(kafka_bootstrap)
    with ExitStack() as stack:
        first = stack.enter_context(running(settings))
        second = stack.enter_context(running(settings))
        pool = stack.enter_context(ThreadPoolExecutor(4))
        yield Instances(first.client, second.client, pool)


def stream(seconds: int = 1) -> dict[str, Any]:
    return {"topic": "instances", "max_uncertainty": f"{seconds}s", "max_delay": "1s"}


PAIR = {"kind": "mutual_deadline", "a": "x", "b": "x", "window": "2s", "threshold": "0.6"}


def test_one_of_two_writes_with_the_same_tag_succeeds(instances: Instances) -> None:
    first, second = instances.first, instances.second
    assert first.put("/v1/streams/tag", json=stream()).status_code == 201
    for number in range(ROUNDS):
        tag = {"If-Match": first.get("/v1/streams/tag").headers["ETag"]}
        answers = instances.at_once(
            partial(first.put, "/v1/streams/tag", json=stream(2 * number + 2), headers=tag),
            partial(second.put, "/v1/streams/tag", json=stream(2 * number + 3), headers=tag),
        )
        assert sorted(it.status_code for it in answers) == [200, 412]
        assert instances.equal("/v1/streams/tag")["version"] == number + 2


def test_no_condition_is_left_without_its_stream(instances: Instances) -> None:
    first, second = instances.first, instances.second
    outcomes = set()
    for _ in range(ROUNDS):
        assert first.put("/v1/streams/x", json=stream()).is_success
        instances.equal("/v1/streams/x")
        deleted, put = instances.at_once(
            partial(first.delete, "/v1/streams/x"),
            partial(second.put, "/v1/conditions/c", json=PAIR),
        )
        outcomes.add((deleted.status_code, put.status_code))
        instances.equal("/v1/config")
        there = second.get("/v1/conditions/c").is_success
        assert there == put.is_success
        assert second.get("/v1/streams/x").is_success == there
        if there:
            assert second.delete("/v1/conditions/c").status_code == 204
            instances.equal("/v1/config")
    assert outcomes <= {(409, 201), (204, 422)}


def test_configurations_of_two_instances_do_not_mix(instances: Instances) -> None:
    first, second = instances.first, instances.second
    for number in range(ROUNDS):
        sets = [
            {
                "resources": [
                    {"kind": "stream", "name": f"{name}{it}", **stream(number + 1)}
                    for it in range(5)
                ]
            }
            for name in "ab"
        ]
        answers = instances.at_once(
            partial(first.put, "/v1/config?prune=true", json=sets[0]),
            partial(second.put, "/v1/config?prune=true", json=sets[1]),
        )
        assert [it.status_code for it in answers] == [200, 200], [it.text for it in answers]
        names = [it["name"] for it in instances.equal("/v1/streams")["items"]]
        assert names in [[f"{name}{it}" for it in range(5)] for name in "ab"]


def test_instances_take_turns(instances: Instances) -> None:
    for number in range(10):
        client = (instances.first, instances.second)[number % 2]
        answer = client.put("/v1/streams/turns", json=stream(number + 1))
        assert answer.is_success
        assert answer.json()["version"] == number + 1
    assert instances.first.put("/v1/streams/turns?dry_run=true", json=stream(99)).is_success
    assert instances.equal("/v1/streams/turns")["version"] == 10
