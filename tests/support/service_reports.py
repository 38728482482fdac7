"""Reports of the service on itself and on the job, after it has read the awaited records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


def wait_until_running(client: httpx.Client, path: str, streams: set[str]) -> None:
    """Wait until the service says that the job evaluates a condition, on these streams."""

    def holds() -> bool:
        status = client.get(f"{path}/status").json()
        return (status["state"], set(status["streams"])) == ("running", streams)

    wait_until(holds)


def readiness(client: httpx.Client, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the answer of /readyz, once Kafka has answered the service within its short limit."""
    answers: list[httpx.Response] = []

    def is_ready() -> bool:
        answers.append(client.get("/readyz", headers=headers))
        return answers[-1].status_code == 200

    wait_until(is_ready)
    found: dict[str, Any] = answers[-1].json()
    return found


def wait_for_metrics(client: httpx.Client, *lines: str) -> None:
    """Wait until the metrics of the service have these lines, or beginnings of lines."""

    def holds() -> bool:
        page = "\n" + client.get("/metrics").text
        return all(f"\n{it}" in page for it in lines)

    wait_until(holds)
