"""The whole configuration: one document, one diff, one transaction."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx
import jsonschema_rs
import pytest

from cli.client.resources import read_resources
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from tests.rest.running import fresh_settings, running
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS, wait_until
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from pathlib import Path

    from service.settings import Settings

pytestmark = pytest.mark.kafka
NONE: dict[str, Any] = {"created": [], "changed": [], "unchanged": [], "deleted": []}
JSON = {"Content-Type": "application/json"}
# Begins a transaction with the writer of the service and is killed before the commit.
KILLED = """
import os, signal, sys
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from service.settings import Settings
from service.transactions import NewRecord, Transactions

seconds = float(sys.argv[4])
settings = Settings(
    bootstrap=sys.argv[1], prefix=sys.argv[2], broker_timeout_seconds=seconds
)
topic = settings.topics.config
admin = UserAdmin({"bootstrap.servers": settings.bootstrap})


class UntilStored(list):
    def __iter__(self):
        yield NewRecord(b"template/ghost", sys.argv[3].encode())
        places = [(topic, 0)]
        while list_offsets(admin, places, Edge.END, seconds) == list_offsets(
            admin, places, Edge.COMMITTED_END, seconds
        ):
            pass
        os.kill(os.getpid(), signal.SIGKILL)


Transactions(settings, topic).write(UntilStored([0, 0]), seconds)
"""


def template(name: str, middle: int = 5) -> dict[str, Any]:
    return {
        "kind": "template",
        "name": name,
        "buckets": [[0, middle, "0.5"], [middle, 9, "0.5"]],
    }


def stream(name: str, **changes: object) -> dict[str, Any]:
    document = {"kind": "stream", "name": name, "topic": f"config-{name}", "max_delay": "1s"}
    return document | {"max_uncertainty": "200ms"} | changes


def pair(name: str, **changes: object) -> dict[str, Any]:
    document = {"kind": "mutual_deadline", "name": name, "a": "x", "b": "y", "window": "2s"}
    return document | {"threshold": "0.6"} | changes


FULL = [pair("near"), stream("y"), stream("x", templates=["t"]), template("t")]


def put(client: httpx.Client, resources: list[Any], query: str = "", **headers: str) -> Any:  # noqa: ANN401  any JSON value
    answer = client.put(f"/v1/config?{query}", json={"resources": resources}, headers=headers)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    shown = {change: [f"{it['kind']}/{it['name']}" for it in found[change]] for change in NONE}
    fields = {
        f"{it['kind']}/{it['name']}": [(f["field"], f["old"], f["new"]) for f in it["fields"]]
        for it in found["changed"]
    }
    return shown, fields


def get(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.get("/v1/config")
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["resources"]
    return found


def head(settings: Settings) -> int:
    """Return the end offset of the config topic, with records of open transactions."""
    admin = UserAdmin({"bootstrap.servers": settings.bootstrap})
    place = (settings.topics.config, 0)
    return list_offsets(admin, [place], Edge.END, PATIENCE_SECONDS)[place]


@pytest.fixture
def settings(kafka_bootstrap: str) -> Settings:
    """Return settings of an installation of the test's own."""
    return fresh_settings(kafka_bootstrap)


def test_configuration_is_created_read_changed_and_pruned(
    settings: Settings, tmp_path: Path
) -> None:
    with running(settings) as (_, client):
        assert get(client) == []
        all_keys = ["template/t", "stream/x", "stream/y", "condition/near"]
        dry, _ = put(client, FULL, "dry_run=true")
        assert dry == NONE | {"created": all_keys}
        assert (get(client), head(settings)) == ([], 0)
        assert put(client, FULL) == (dry, {})
        # Four records and the marker of their transaction.
        assert head(settings) == 5
        found = get(client)
        assert [(it["kind"], it["name"]) for it in found] == [
            ("template", "t"),
            ("stream", "x"),
            ("stream", "y"),
            ("mutual_deadline", "near"),
        ]
        assert (found[1]["templates"], found[3]["paused"]) == (["t"], False)
        # The answer of GET and the content of the file form change nothing.
        assert put(client, found, "prune=true") == (NONE | {"unchanged": all_keys}, {})
        text = client.get("/v1/config", headers={"Accept": "application/yaml"})
        assert text.headers["content-type"].startswith("application/yaml")
        (tmp_path / "all.yaml").write_bytes(text.content)
        read = [it.to_document() for it in read_resources([tmp_path / "all.yaml"])]
        assert read == found
        assert head(settings) == 5
        # A template and its stream, a condition and its pause.
        shown, fields = put(
            client, [pair("near", threshold=0.7, paused=True), FULL[2], template("t", 6)]
        )
        assert shown == NONE | {"changed": ["template/t", "stream/x", "condition/near"]}
        assert fields["stream/x"] == [
            ("templates", [{"name": "t", "version": 1}], [{"name": "t", "version": 2}])
        ]
        assert fields["condition/near"] == [
            ("paused", False, True),
            ("threshold", "0.6", "0.7"),
        ]
        stored = client.get("/v1/conditions/near").json()
        assert (stored["version"], stored["paused"]) == (2, True)
        # A missing pause leaves it as it is; a pause alone is not a new version.
        assert put(client, [pair("near", threshold=0.7)])[0]["unchanged"] == ["condition/near"]
        assert put(client, [pair("near", threshold=0.7, paused=False)])[0]["changed"]
        assert client.get("/v1/conditions/near").json()["version"] == 2
        shown, _ = put(client, [stream("y")], "prune=true")
        assert shown == NONE | {
            "unchanged": ["stream/y"],
            "deleted": ["template/t", "stream/x", "condition/near"],
        }
        assert [it["name"] for it in get(client)] == ["y"]
    # A new service reads the same, including the versions of deleted names.
    with running(settings) as (_, client):
        assert [it["name"] for it in get(client)] == ["y"]
        put(client, FULL)
        assert client.get("/v1/conditions/near").json()["version"] == 3


def test_one_bad_resource_writes_nothing_and_all_problems_are_listed(settings: Settings) -> None:
    with running(settings) as (_, client):
        put(client, [stream("x")])
        before = head(settings)
        bad = [
            pair("near"),
            pair("far", threshold=2, window_us=5),
            pair("alone", b="z"),
            stream("y", max_delay="soon", colour="red"),
            stream("__", topic="t"),
            template("t", 20),
        ]
        answer = client.put("/v1/config", json={"resources": bad})
        named = answer.json()["errors"]
        assert (answer.status_code, [it["resource"] for it in named]) == (422, ["resources[4]"])
        answer = client.put("/v1/config", json={"resources": [*bad[:4], bad[5]]})
        assert (answer.status_code, answer.json()["error_code"]) == (422, 42208)
        found = {(it["resource"], it["field"]): it for it in answer.json()["errors"]}
        assert set(found) == {
            ("condition/far", "threshold"),
            ("condition/far", "window"),
            ("condition/alone", "b"),
            ("stream/y", "max_delay"),
            ("stream/y", "colour"),
            ("template/t", "buckets[1].hi"),
        }
        assert found["condition/alone", "b"]["problem"] == "stream 'z' does not exist"
        assert head(settings) == before
        assert [it["name"] for it in get(client)] == ["x"]
        # A stream that prune would delete is missing.
        answer = client.put("/v1/config?prune=true", json={"resources": [pair("near", b="x")]})
        assert {it["field"] for it in answer.json()["errors"]} == {"a", "b"}
        assert "prune" in answer.json()["errors"][0]["remedy"]
        twice = client.put("/v1/config", json={"resources": [stream("x"), stream("x")]})
        assert twice.json()["detail"] == "stream/x: name: occurs 2 times"


def test_resources_change_together_that_cannot_change_one_by_one(settings: Settings) -> None:
    with running(settings) as (_, client):
        put(client, [stream("x"), stream("y"), pair("near")])
        grid = {"partitioning": "grid"}
        # The condition remains on the stream: refused, as by the single route.
        refused = client.put("/v1/config", json={"resources": [stream("x", **grid)]})
        assert refused.json()["errors"][0]["field"] == "conditions.near"
        assert refused.json()["errors"][0]["resource"] == "stream/x"
        both = [stream("x", **grid), stream("y", **grid), pair("other")]
        shown, _ = put(client, both, "prune=true")
        assert shown == NONE | {
            "created": ["condition/other"],
            "changed": ["stream/x", "stream/y"],
            "deleted": ["condition/near"],
        }


def test_if_match_lets_one_of_two_writers_through(settings: Settings) -> None:
    with running(settings) as (_, client):
        tag = client.get("/v1/config").headers["ETag"]
        barrier, statuses = threading.Barrier(2), []

        def write(name: str) -> None:
            barrier.wait()
            answer = client.put(
                "/v1/config", json={"resources": [stream(name)]}, headers={"If-Match": tag}
            )
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, 412]
        assert len(get(client)) == 1
        # The ETag of a response is that of the next request; a dry run shows the present one.
        answer = client.put("/v1/config?dry_run=true", json={"resources": [stream("z")]})
        tag = answer.headers["ETag"]
        put(client, [stream("z")], **{"If-Match": tag})
        assert client.get("/v1/config").headers["ETag"] != tag


def test_transaction_of_a_killed_service_is_aborted(settings: Settings) -> None:
    with running(settings) as (_, client):
        put(client, [stream("x")])
        ghost = '{"v": 1, "kind": "template", "name": "ghost", "version": 1, "updated_at": 0}'
        done = subprocess.run(  # noqa: S603  the arguments are those above
            [
                *(sys.executable, "-c", KILLED, settings.bootstrap, settings.prefix, ghost),
                str(SERVICE_SECONDS),
            ],
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == -signal.SIGKILL
        assert [it["name"] for it in get(client)] == ["x"]
    # The next service ends the transaction at its start, and its writes are read back.
    with running(settings) as (_, client):
        assert [it["name"] for it in get(client)] == ["x"]
        put(client, [template("t")])
        assert [it["name"] for it in get(client)] == ["t", "x"]
        assert readiness(client)["unreadable_records"] == []


def test_readers_see_a_transaction_at_once(settings: Settings) -> None:
    many = [stream(f"s{number}", topic="config-many") for number in range(40)]
    with running(settings) as (_, client), running(settings) as (_, other):
        seen: set[int] = set()
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                seen.add(len(get(other)))

        thread = threading.Thread(target=watch)
        thread.start()
        put(client, many)
        put(client, [], "prune=true")
        put(client, many)
        wait_until(lambda: 40 in seen)
        stop.set()
        thread.join()
        assert seen <= {0, 40}


def test_schema_is_published_and_accepts_what_get_returns(settings: Settings) -> None:
    with running(settings) as (_, client):
        answer = client.get("/v1/schema")
        assert answer.headers["content-type"] == "application/schema+json"
        validator = jsonschema_rs.Draft202012Validator(answer.json())
        put(client, FULL)
        for document in [*FULL, *get(client), client.get("/v1/config").json()]:
            validator.validate(document)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 422),
        (b'{"resources": {}}', 422),
        (b'{"resources": [1]}', 422),
        (b'{"resources": [{"kind": "stream"}]}', 422),
        (b'{"resources": [{"kind": 1, "name": "x"}]}', 422),
        (b'{"resources": [{"kind": "nonsense", "name": "x"}]}', 422),
        (b'{"resources": [{"kind": "deadline", "name": "x", "paused": 1}]}', 422),
        (b'{"resources": [], "streams": []}', 422),
        (b"[" * 1000, 422),
        (b'{"resources": [' + b"1," * 100_001 + b"1]}", 422),
        (b'{"resources": [' + b" " * 1_048_576 + b"]}", 413),
    ],
)
def test_bodies_that_are_not_configurations_are_refused(
    client: httpx.Client, body: bytes, status: int
) -> None:
    assert client.put("/v1/config", content=body, headers=JSON).status_code == status
