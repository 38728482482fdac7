"""Unreadable records of the config topic: other resources stay in force; records can be removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.rest.running import fresh_settings, running
from tests.rest.test_restart import process
from tests.support.kafka import Sent, produce, produce_with_unreadable_header
from tests.support.messages import assert_names
from tests.support.patience import wait_until
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    import httpx

    from service.settings import Settings

pytestmark = pytest.mark.kafka
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "y", "window": "2s", "threshold": 0.7}
BAD = [
    Sent(b"not valid JSON", b"stream/x"),
    Sent(b"[1]", b"template/t"),
    Sent(b'{"v": 1}', b"neither kind nor name"),
    Sent(b"{}", b"stream/\xff"),
]


def unreadable(client: httpx.Client) -> list[dict[str, Any]]:
    answer = readiness(client)
    found: list[dict[str, Any]] = answer["unreadable_records"]
    assert answer["unreadable_records_total"] == len(found)
    return found


def produce_bad(settings: Settings, *further: Sent) -> None:
    """Send the bad records; the first one also has a header that cannot be read."""
    config = settings.topics.config
    produce_with_unreadable_header(settings.bootstrap, config, BAD[0])
    produce(settings.bootstrap, config, [*BAD[1:], *further])


def stream(settings: Settings) -> dict[str, Any]:
    return {"topic": f"{settings.prefix}-events", "max_uncertainty": "2s", "max_delay": "1s"}


def check_set_aside(client: httpx.Client) -> None:
    """Check what is said of the bad records, and that the rest is there."""
    expected = {
        "stream/x": "not valid JSON",
        "template/t": "not a JSON object",
        "neither kind nor name": "must be kind/name",
        "stream/\\xff": "must be kind/name",
    }
    assert [it["key"] for it in unreadable(client)] == list(expected)
    for it in unreadable(client):
        assert_names(it["problem"], expected[it["key"]])
    assert "coincide_config_records_unreadable 4.0" in client.get("/metrics").text
    for path in ("/v1/streams/x", "/v1/conditions/c/plan"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert_names(answer.json()["detail"], "stream 'x'", "not in force")
    assert client.get("/v1/conditions/c").status_code == 200
    assert client.get("/v1/conditions/c/status").status_code == 200
    assert [it["name"] for it in client.get("/v1/streams").json()["items"]] == ["y"]


def test_record_that_cannot_be_read_takes_its_resource_out_of_force(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with process(settings) as (service, child):
        client = service.client
        for name in ("x", "y"):
            assert client.put(f"/v1/streams/{name}", json=stream(settings)).status_code == 201
        assert client.put("/v1/conditions/c", json=PAIR).status_code == 201
        assert unreadable(client) == []
        produce_bad(settings)
        foreign = Sent(b"{}", b"k", headers=(("ce_source", b"/coincide/conditions/c"),))
        produce_with_unreadable_header(kafka_bootstrap, settings.topics.alarms, foreign)
        wait_until(lambda: len(unreadable(client)) == len(BAD))
        check_set_aside(client)
        assert client.get("/v1/alarms").json()["items"] == []
        assert child.poll() is None
    with process(settings) as (service, _):
        client = service.client
        check_set_aside(client)
        # Registered again it is in force again, with a version that no alarm was written under.
        healed = client.put("/v1/streams/x", json=stream(settings))
        assert healed.status_code == 201
        assert healed.json()["version"] > 1
        assert client.get("/v1/conditions/c/plan").status_code == 200
        assert len(unreadable(client)) == len(BAD) - 1


def test_command_lists_and_removes_records_that_cannot_be_read(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    monkeypatch.setenv("COINCIDE_BOOTSTRAP", settings.bootstrap)
    monkeypatch.setenv("COINCIDE_PREFIX", settings.prefix)
    config = settings.topics.config
    with running(settings) as service:
        client = service.client
        assert client.put("/v1/streams/y", json=stream(settings)).status_code == 201
        produce_bad(settings, Sent(b'{"v": 2}', b"planet/z"))

        listed = CliRunner().invoke(app, ["repair-config"], input="n\n")
        assert listed.exit_code == 1
        for key in ("stream/x", "template/t", "neither kind nor name", "stream/\\xff", "planet/z"):
            assert key in listed.output
        # Offset 1 is the marker of a transaction.
        assert "offset 2" in listed.output
        assert len(unreadable(client)) == len(BAD) + 1

        removed = CliRunner().invoke(app, ["repair-config", "--yes"])
        assert removed.exit_code == 0, removed.output
        wait_until(lambda: unreadable(client) == [])
        assert "removed 5 of 5 unreadable records" in removed.output
        none = CliRunner().invoke(app, ["repair-config"])
        assert none.exit_code == 0
        assert none.output == f"{settings.topics.config} has no unreadable records\n"
        assert client.get("/v1/streams/y").status_code == 200
        # The version of what is removed is not given again.
        assert client.put("/v1/streams/x", json=stream(settings)).json()["version"] > 1

    produce(kafka_bootstrap, config, [Sent(b'{"v": 2}', b"stream/new")])
    kept = CliRunner().invoke(app, ["repair-config", "--yes"])
    assert "newer version" in kept.output
    assert kept.exit_code == 1
    removed = CliRunner().invoke(app, ["repair-config", "--yes", "--newer"])
    assert removed.exit_code == 0
    with running(settings) as service:
        assert unreadable(service.client) == []
