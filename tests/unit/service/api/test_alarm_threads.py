"""Searches of recent alarms leave threads to other requests."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx

from service.alarms.feed import Page
from service.app import create_app
from service.settings import Settings

REQUESTS = 100


def test_other_routes_answer_while_searches_wait() -> None:
    app = create_app(Settings(bootstrap="127.0.0.1:1"))
    may_end, lock = threading.Event(), threading.Lock()
    running = most = 0

    async def run() -> list[int]:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def search(*_: Any) -> Page:  # noqa: ANN401 - as the method that it replaces
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            loop.call_soon_threadsafe(begun.set)
            may_end.wait()
            with lock:
                running -= 1
            return Page([], None, None, {})

        app.state.plane.alarms.page = search
        transport = httpx.ASGITransport(app)
        url = "http://localhost:8080"
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            asked = [asyncio.create_task(client.get("/v1/alarms")) for _ in range(REQUESTS)]
            await begun.wait()
            # A route in a thread.
            answer = await client.get("/v1/conditions/none/status")
            assert not any(it.done() for it in asked)
            may_end.set()
            return [it.status_code for it in [answer, *await asyncio.gather(*asked)]]

    assert asyncio.run(run()) == [404, *[200] * REQUESTS]
    assert most <= 2
