"""Generated requests (schemathesis) without credentials and in each role, by key and by token."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import schemathesis
from fastapi import FastAPI

from correlation.kinds import KINDS
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from service.access.keys import new_key, write_keys
from service.api.callers import OPEN_PATHS
from service.api.common import make_precondition
from service.app import create_app
from tests.rest.running import fresh_settings
from tests.support.generated_requests import send_generated
from tests.support.issuer import AUDIENCE, running_issuer
from tests.support.kafka import read_committed
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.settings import Settings
    from tests.support.generated_requests import Answered

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
_EXAMPLES = 5
NOW_US = 1_767_225_600_000_000
ROLES = ("viewer", "editor", "admin")
METHODS = ("key", "token")
# Of the names that the editor may write. Short, so that generated names have it, too.
PREFIX = "a"


class Protected(NamedTuple):
    """An application with access control, and credentials by method and role."""

    app: FastAPI
    settings: Settings
    credentials: dict[tuple[str, str], str]


@pytest.fixture
def protected(kafka_bootstrap: str, tmp_path: Path) -> Iterator[Protected]:
    """Return a started application with the streams and the condition of the examples."""
    made = {
        role: new_key(role, role, [PREFIX] if role == "editor" else [], NOW_US) for role in ROLES
    }
    path = tmp_path / "keys.json"
    write_keys(path, [key for key, _ in made.values()])
    with running_issuer() as issuer:
        settings = fresh_settings(
            kafka_bootstrap,
            keys_file=path,
            oidc_issuer=issuer.url,
            oidc_audience=AUDIENCE,
            oidc_roles={"viewer": "viewer", "editor": f"editor:{PREFIX}", "admin": "admin"},
            allowed_hosts=("*",),
            requests_per_second=0,
        )
        app = create_app(settings)
        plane = app.state.plane
        plane.start()
        for name in ("acoustic", "seismic"):
            stream = {"topic": name, "max_uncertainty_us": 200_000, "max_delay_us": 1_000_000}
            plane.writes.put("stream", name, stream, make_precondition(None, None))
        condition = dict(KINDS["mutual_deadline"].example) | {"window_us": 5}
        plane.writes.put("condition", "acoustic", condition, make_precondition(None, None))
        keys = {("key", role): text for role, (_, text) in made.items()}
        tokens = {("token", role): issuer.token(sub=role, roles=[role]) for role in ROLES}
        yield Protected(app, settings, keys | tokens)
        plane.stop()


def answers_to(app: FastAPI, credentials: str | None) -> list[Answered]:
    """Return the answers to generated requests, all of which must be answered."""
    headers = {} if credentials is None else {"Authorization": f"Bearer {credentials}"}
    document = copy.deepcopy(app.openapi())
    if credentials is not None:
        # Otherwise schemathesis would add credentials of its own to those in the headers.
        for methods in document["paths"].values():
            for operation in methods.values():
                operation.pop("security", None)
    schema: Any = schemathesis.openapi.from_dict(document)
    schema.app = app
    schema.config.generation.max_examples = _EXAMPLES
    schema.config.seed = 1
    if headers:
        schema.config.update(headers=headers)
    found = send_generated(schema)
    assert found.errors == []
    return found.answers


def ends(settings: Settings) -> dict[tuple[str, int], int]:
    """Return the end offsets of the topics of all writes, once no transaction is open."""
    topics = settings.topics
    places = [(it, 0) for it in (topics.config, topics.heartbeats, topics.audit)]
    admin = UserAdmin({"bootstrap.servers": settings.bootstrap})

    def edges(edge: Edge) -> dict[tuple[str, int], int]:
        return list_offsets(admin, places, edge, PATIENCE_SECONDS)

    wait_until(lambda: edges(Edge.COMMITTED_END) == edges(Edge.END))
    return edges(Edge.END)


def test_unhandled_exception_is_an_error() -> None:
    app = FastAPI()

    @app.get("/always")
    def always() -> None:
        raise LookupError("raised by the route")

    with pytest.raises(AssertionError, match="raised by the route"):
        answers_to(app, None)


def test_without_credentials_nothing_is_answered(protected: Protected) -> None:
    before = ends(protected.settings)
    found = answers_to(protected.app, None)
    # 429: schemathesis guesses keys, too.
    closed = {it.status for it in found if it.path not in OPEN_PATHS}
    assert {401} <= closed <= {401, 429}
    assert {200} <= {it.status for it in found if it.path in OPEN_PATHS}
    assert not any(it.status == 500 for it in found)
    assert len(found) > 100
    assert ends(protected.settings) == before


@pytest.mark.parametrize("method", METHODS)
def test_viewer_reads_and_writes_nothing(protected: Protected, method: str) -> None:
    before = ends(protected.settings)
    found = answers_to(protected.app, protected.credentials[method, "viewer"])
    assert {200, 404, 422} <= {it.status for it in found if it.method == "GET"}
    assert not any(it.status >= 500 for it in found)
    assert any(it.status == 403 for it in found if it.method != "GET")
    assert ends(protected.settings) == before


@pytest.mark.parametrize(
    ("method", "role"),
    [
        ("key", "editor"),
        # test_access.py has a shorter test of the rights of such a token.
        pytest.param("token", "editor", marks=pytest.mark.nightly),
        *(pytest.param(method, "admin", marks=pytest.mark.nightly) for method in METHODS),
    ],
)
def test_no_request_of_a_writer_fails_the_service(
    protected: Protected, method: str, role: str
) -> None:
    topic = protected.settings.topics.config
    begin = ends(protected.settings)[topic, 0]
    found = answers_to(protected.app, protected.credentials[method, role])
    assert not any(it.status >= 500 for it in found)
    # Editors do not change the number of slots, and no names of others.
    assert any(it.status == 403 for it in found) == (role == "editor")
    records = read_committed(protected.settings.bootstrap, topic)
    written = [(it.key or b"").decode() for it in records if it.offset >= begin]
    assert written
    if role == "editor":
        assert all(it.partition("/")[2].startswith(PREFIX) for it in written)
