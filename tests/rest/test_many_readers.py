"""Thousands of readers of the live feed: those within the limit are served, others refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from correlation.resources.topics import Topics
from tests.support.command import service_process
from tests.support.kafka import produce
from tests.support.patience import PATIENCE_SECONDS
from tests.support.raw_http import DROPPED, RawClient, memory_of, request
from tests.support.results import result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kafka
# The default of COINCIDE_ALARM_READERS.
_READERS = 100
_ATTEMPTS = 2000
# A connection takes about 50 kB; the service keeps none that is above its limits.
_MAX_GROWTH_BYTES = 100 * 2**20
_LISTEN = request("GET", "/v1/alarms", ["Accept: text/event-stream"])


class Process(NamedTuple):
    """A running process of the service."""

    pid: int
    url: str
    bootstrap: str
    prefix: str


@pytest.fixture
def process(kafka_bootstrap: str, tmp_path: Path) -> Iterator[Process]:
    prefix = "many-readers"
    found, url = service_process(kafka_bootstrap, prefix, tmp_path)
    found.start()
    try:
        with httpx.Client(base_url=url) as client:
            found.wait_until(partial(_is_ready, client), PATIENCE_SECONDS)
        assert found.pid is not None
        yield Process(found.pid, url, kafka_bootstrap, prefix)
    finally:
        found.stop()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.HTTPError:
        return False


def test_readers_within_the_limit_are_served_while_thousands_are_refused(process: Process) -> None:
    asyncio.run(_run(process))


async def _run(process: Process) -> None:
    port = urlsplit(process.url).port or 0
    readers, crowd = RawClient(port), RawClient(port, "127.0.0.3")
    client = httpx.AsyncClient(base_url=process.url, timeout=PATIENCE_SECONDS)
    try:
        streams = await asyncio.gather(*(readers.open(_LISTEN) for _ in range(_READERS)))
        assert Counter(status for status, _ in streams) == {"200": _READERS}
        before = memory_of(process.pid)
        refused = asyncio.gather(*(crowd.open(_LISTEN) for _ in range(_ATTEMPTS)))
        # While they try, and while their connections are open.
        await _check_honest(client, 0)
        outcomes = Counter(status for status, _ in await refused)
        assert outcomes.keys() <= {"503", DROPPED}
        assert outcomes["503"] > 0
        await _check_honest(client, 1)
        assert memory_of(process.pid) - before < _MAX_GROWTH_BYTES

        alarms = Topics(process.prefix).alarms
        await asyncio.to_thread(produce, process.bootstrap, alarms, [result(1, mark="for-all")])
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _, stream in streams:
                assert stream is not None
                await stream.readuntil(b"for-all")
    finally:
        readers.close()
        crowd.close()
        await client.aclose()


async def _check_honest(client: httpx.AsyncClient, number: int) -> None:
    """Check that another client is answered, and that it writes."""
    assert (await client.get("/livez")).json() == {"live": True}
    document = {"topic": "many-readers", "max_uncertainty": f"{number + 1}s", "max_delay": "1s"}
    written = await client.put("/v1/streams/x", json=document)
    assert (written.status_code, written.json()["version"]) == ((201, 200)[number], number + 1)
