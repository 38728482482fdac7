"""A service that the tests of a module share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rest.running import Service, fresh_settings, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


@pytest.fixture(scope="module")
def service(kafka_bootstrap: str) -> Iterator[Service]:
    """Return a service that the tests of a module share."""
    with running(fresh_settings(kafka_bootstrap)) as found:
        yield found


@pytest.fixture
def client(service: Service) -> httpx.Client:
    """Return a client of the shared service."""
    return service.client
