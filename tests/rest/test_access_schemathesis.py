"""Generated requests (schemathesis) without credentials and in each role."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from schemathesis.engine import events, from_schema

from service.access.keys import new_key, write_keys
from service.api.callers import OPEN_PATHS
from service.app import create_app
from tests.rest.running import fresh_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fastapi import FastAPI

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
_EXAMPLES = 10
NOW_US = 1_767_225_600_000_000
ROLES = ("viewer", "editor", "admin")
# Of the names that the editor may write. Short, so that generated names have it, too.
PREFIX = "a"


@pytest.fixture
def protected(kafka_bootstrap: str, tmp_path: Path) -> Iterator[tuple[FastAPI, dict[str, str]]]:
    """Return a started application with access control, and its keys by role."""
    made = {
        role: new_key(role, role, [PREFIX] if role == "editor" else [], NOW_US) for role in ROLES
    }
    path = tmp_path / "keys.json"
    write_keys(path, [key for key, _ in made.values()])
    settings = fresh_settings(
        kafka_bootstrap, keys_file=path, allowed_hosts=("*",), requests_per_second=0
    )
    app = create_app(settings)
    app.state.plane.start()
    yield app, {role: text for role, (_, text) in made.items()}
    app.state.plane.stop()


def answers_to(app: FastAPI, key: str | None) -> list[tuple[str, str, int]]:
    """Return method, path and status of generated requests."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    document = copy.deepcopy(app.openapi())
    if key is not None:
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
    found = []
    for event in from_schema(schema).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if not isinstance(event, events.ScenarioFinished):
            continue
        for interaction in event.recorder.interactions.values():
            if interaction.response is not None:
                path = interaction.request.uri.partition("?")[0]
                found.append((interaction.request.method, path, interaction.response.status_code))
    return found


def is_open(path: str) -> bool:
    return any(path.endswith(it) for it in OPEN_PATHS)


def test_without_credentials_nothing_is_answered(
    protected: tuple[FastAPI, dict[str, str]],
) -> None:
    app, _ = protected
    found = answers_to(app, None)
    # 429: schemathesis guesses keys, too.
    assert {401} <= {status for _, path, status in found if not is_open(path)} <= {401, 429}
    assert len(found) > 100


def test_viewer_reads_and_writes_nothing(protected: tuple[FastAPI, dict[str, str]]) -> None:
    app, keys = protected
    found = answers_to(app, keys["viewer"])
    assert {200, 404, 422} <= {status for method, _, status in found if method == "GET"}
    assert not any(status >= 500 for *_, status in found)
    assert any(status == 403 for method, _, status in found if method != "GET")
    assert app.state.plane.registry.configuration() == ()


@pytest.mark.parametrize("role", ["editor", pytest.param("admin", marks=pytest.mark.nightly)])
def test_no_request_of_a_writer_fails_the_service(
    protected: tuple[FastAPI, dict[str, str]], role: str
) -> None:
    app, keys = protected
    found = answers_to(app, keys[role])
    assert not any(status >= 500 for *_, status in found)
    # Editors do not change the number of slots, and no names of others.
    assert any(status == 403 for *_, status in found) == (role == "editor")
    # Later requests may delete what was created.
    created = {path.rpartition("/")[2] for _, path, status in found if status == 201}
    assert created
    names = created | {it.name for it in app.state.plane.registry.configuration()}
    assert role == "admin" or all(it.startswith(PREFIX) for it in names)
