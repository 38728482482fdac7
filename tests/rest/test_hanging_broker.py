"""A hanging broker: the number of waiting writes is limited, and monitoring still answers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from service.turns import MAX_WAITING, Turns
from tests.rest.running import fresh_settings, running
from tests.support.hanging import hanging
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from concurrent.futures import Future

    import httpx

    from cli.stack.broker import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
WRITES = 60
# No write gives up while the broker hangs: the longest limit that the settings take.
HELD_SECONDS = 300


def answered(writes: list[Future[httpx.Response]]) -> Counter[tuple[int, int | None]]:
    found = [it.result() for it in writes if it.done()]
    return Counter((it.status_code, it.json().get("error_code")) for it in found)


def test_monitoring_answers_while_writes_wait_for_a_broker_that_hangs(
    paused_broker: EmbeddedBroker,
) -> None:
    settings = fresh_settings(
        paused_broker.bootstrap,
        broker_timeout_seconds=HELD_SECONDS,
        write_timeout_seconds=HELD_SECONDS,
    )
    stream = {"topic": f"{settings.prefix}-events", "max_uncertainty": "2s", "max_delay": "1s"}
    with running(settings) as service, ThreadPoolExecutor(WRITES) as pool:
        client = service.client
        client.timeout = 2 * PATIENCE_SECONDS
        assert client.put("/v1/streams/x", json=stream).status_code == 201

        def write(number: int) -> httpx.Response:
            return client.put(f"/v1/streams/x{number}", json=stream)

        with hanging(paused_broker):
            writes = [pool.submit(write, number) for number in range(WRITES)]
            # One has the turn, some wait; the others get an error at once.
            too_many = Counter({(503, 50304): WRITES - MAX_WAITING - 1})
            wait_until(lambda: answered(writes) == too_many, PATIENCE_SECONDS)
            refused = next(it.result() for it in writes if it.done())
            assert int(refused.headers["Retry-After"]) > 0
            for path, status in (
                ("/livez", 200),
                ("/readyz", 503),
                ("/metrics", 200),
                ("/v1/job", 200),
                ("/v1/streams/x", 200),
            ):
                assert client.get(path).status_code == status, path
            asked = [pool.submit(client.get, "/readyz") for _ in range(20)]
            assert {it.result().json()["error_code"] for it in asked} == {50303}
            # All that came before any write that was taken has ended.
            assert answered(writes) == too_many

        found = [it.result() for it in writes]
        assert answered(writes) == too_many + Counter({(201, None): MAX_WAITING + 1})
        written = sum(it.status_code == 201 for it in found)
        assert len(client.get("/v1/streams").json()["items"]) == written + 1
        assert readiness(client)["ready"]


def test_write_whose_turn_does_not_come_is_told_so(
    paused_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = fresh_settings(
        paused_broker.bootstrap,
        broker_timeout_seconds=HELD_SECONDS,
        write_timeout_seconds=HELD_SECONDS,
    )
    monkeypatch.setattr("service.plane.Turns", lambda _: Turns(1))
    stream = {"topic": f"{settings.prefix}-events", "max_uncertainty": "2s", "max_delay": "1s"}
    with running(settings) as service, ThreadPoolExecutor(2) as pool:
        client = service.client
        client.timeout = 2 * PATIENCE_SECONDS
        assert client.put("/v1/streams/x", json=stream).status_code == 201
        with hanging(paused_broker):
            writes = [
                pool.submit(client.put, f"/v1/streams/y{number}", json=stream)
                for number in range(2)
            ]
            wait_until(lambda: any(it.done() for it in writes), PATIENCE_SECONDS)
            assert answered(writes) == Counter({(503, 50304): 1})
        refused, accepted = sorted((it.result().status_code for it in writes), reverse=True)
        assert (refused, accepted) == (503, 201)
