"""Address that the health check of a service asks."""

from __future__ import annotations

import pytest

from cli.client.health_command import own_url
from service.settings import Settings


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),  # noqa: S104 - not bound
        ("::", "http://[::1]:8080"),
        ("[::1]", "http://[::1]:8080"),
        ("192.0.2.7", "http://192.0.2.7:8080"),
        ("localhost", "http://localhost:8080"),
    ],
)
def test_service_is_asked_where_it_listens(host: str, url: str) -> None:
    assert own_url(Settings(host=host)) == url
