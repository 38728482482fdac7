"""What the service says of the job: it reads the job's records, and may be behind a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.patience import wait_until

if TYPE_CHECKING:
    import httpx


def wait_until_running(client: httpx.Client, path: str, streams: set[str]) -> None:
    """Wait until the service says that the job evaluates a condition, on these streams."""

    def holds() -> bool:
        status = client.get(f"{path}/status").json()
        return (status["state"], set(status["streams"])) == ("running", streams)

    wait_until(holds)


def wait_for_metrics(client: httpx.Client, *lines: str) -> None:
    """Wait until the metrics of the service have these lines, or beginnings of lines."""

    def holds() -> bool:
        page = "\n" + client.get("/metrics").text
        return all(f"\n{it}" in page for it in lines)

    wait_until(holds)
