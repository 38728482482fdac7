"""Access control on a running service: rights to names, audit records, revocation, limits."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from service.access.keys import new_key, write_keys
from tests.rest.running import Service, fresh_settings, running
from tests.support.event_stream import ACCEPT, listening
from tests.support.issuer import AUDIENCE, Issuer, running_issuer
from tests.support.kafka import create_topics, produce, read_committed
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.records import built_in_checker
from tests.support.results import result
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.kafka import Received

pytestmark = pytest.mark.kafka
NOW_US = 1_767_225_600_000_000


class Protected(NamedTuple):
    """A service with access control, and clients of its roles."""

    service: Service
    issuer: Issuer
    viewer: httpx.Client
    editor: httpx.Client
    admin: httpx.Client
    editor_key_id: str


@pytest.fixture(scope="module")
def protected(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Protected]:
    """Run a service with keys and an issuer; the editor and the role `payments` may write `a-`."""
    path = tmp_path_factory.mktemp("access") / "keys.json"
    made = {
        "viewer": new_key("vera", "viewer", (), NOW_US),
        "editor": new_key("edgar", "editor", ["a-"], NOW_US),
        "admin": new_key("ada", "admin", (), NOW_US),
    }
    write_keys(path, [key for key, _ in made.values()])
    with running_issuer() as issuer:
        settings = fresh_settings(
            kafka_bootstrap,
            keys_file=path,
            oidc_issuer=issuer.url,
            oidc_audience=AUDIENCE,
            oidc_roles={"editor": "editor", "viewer": "viewer", "payments": "editor:a-"},
            requests_per_second=0,
        )
        with running(settings) as service:
            url, patience = service.client.base_url, service.client.timeout
            clients = {
                role: httpx.Client(
                    base_url=url, timeout=patience, headers={"Authorization": f"Bearer {text}"}
                )
                for role, (_, text) in made.items()
            }
            yield Protected(service, issuer, **clients, editor_key_id=made["editor"][0].id)
            for client in clients.values():
                client.close()


def stream(topic: str) -> dict[str, Any]:
    return {"topic": topic, "max_uncertainty": "200ms", "max_delay": "1s"}


def pair(stream_name: str) -> dict[str, Any]:
    return {
        "kind": "mutual_deadline",
        "a": stream_name,
        "b": stream_name,
        "window": "2s",
        "threshold": 0.5,
    }


def audit(protected: Protected) -> list[Received]:
    settings = protected.service.settings
    return read_committed(settings.bootstrap, settings.topics.audit)


def audited(protected: Protected, name: str, count: int) -> list[dict[str, Any]]:
    """Return the audit records of a resource, checked against their published schema.

    A record is visible a moment after its write is answered: `count` records are waited for.
    """

    def named() -> list[Received]:
        return [it for it in audit(protected) if (it.key or b"").endswith(f"/{name}".encode())]

    wait_until(lambda: len(named()) >= count)
    found = []
    for record in named():
        assert built_in_checker().type_of("audit", record) == "audit"
        value = json.loads(record.value or b"")
        assert record.key == f"{value['kind']}/{value['name']}".encode()
        found.append(value)
    return found


def test_editor_writes_names_with_its_prefix_only(protected: Protected) -> None:
    assert protected.editor.put("/v1/streams/a-one", json=stream("t-one")).status_code == 201
    refused = protected.editor.put("/v1/streams/b-one", json=stream("t-one"))
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert "begin with: a-" in refused.json()["detail"]
    assert protected.admin.get("/v1/streams/b-one").status_code == 404
    assert protected.admin.put("/v1/streams/b-one", json=stream("t-one")).status_code == 201
    for method, path in (
        ("DELETE", "/v1/streams/b-one"),
        ("DELETE", "/v1/streams/b-unknown"),
        ("POST", "/v1/streams/b-one/reset-watermark"),
        ("PUT", "/v1/conditions/b-one/pause"),
        ("PUT", "/v1/conditions/b-one/resume"),
    ):
        assert protected.editor.request(method, path).status_code == 403
    assert protected.viewer.get("/v1/streams/b-one").is_success


def test_number_of_slots_needs_the_role_admin(protected: Protected) -> None:
    path, body = "/v1/job/slots", {"slots": 3}
    for role in (protected.viewer, protected.editor):
        for params in ({}, {"dry_run": "true"}):
            refused = role.put(path, json=body, params=params)
            assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
            assert_names(refused.json()["detail"], "role admin")
    # Everybody may read it: it was not registered.
    assert protected.viewer.get(path).status_code == 404
    created = protected.admin.put(path, json=body)
    assert (created.status_code, created.json()["slots"]) == (201, 3)
    assert protected.editor.put(path, json={"slots": 2}).status_code == 403
    read = protected.editor.get(path)
    assert (read.status_code, read.json()["slots"], read.json()["version"]) == (200, 3, 1)
    (record,) = audited(protected, "slots", 1)
    assert (record["kind"], record["action"], record["who"]["name"]) == ("job", "created", "ada")


def test_configuration_needs_the_right_to_every_change(protected: Protected) -> None:
    assert protected.admin.put("/v1/streams/b-two", json=stream("t-two")).is_success
    own, foreign = ({"kind": "stream", "name": name} for name in ("a-two", "b-two"))
    mixed = [own | stream("t-two"), foreign | stream("t-other")]
    answer = protected.editor.put("/v1/config", json={"resources": mixed})
    assert (answer.status_code, answer.json()["error_code"]) == (403, 40301)
    assert protected.viewer.get("/v1/streams/a-two").status_code == 404
    # Unchanged resources of others may be part of it.
    allowed = [own | stream("t-two"), foreign | stream("t-two")]
    answer = protected.editor.put("/v1/config", json={"resources": allowed})
    assert answer.is_success
    assert answer.json()["created"] == [{"kind": "stream", "name": "a-two"}]
    # A missing topic is created if one of its streams may be written, and else not.
    named = {kind: f"{protected.service.settings.prefix}-{kind}" for kind in ("both", "foreign")}
    for name in ("b-both", "b-foreign"):
        document = stream("t-two") | {"topic": named[name[2:]]}
        assert protected.admin.put(f"/v1/streams/{name}", json=document).is_success
    client = AdminClient({"bootstrap.servers": protected.service.settings.bootstrap})
    for it in client.delete_topics([*named.values()]).values():
        it.result(PATIENCE_SECONDS)

    def there() -> set[str]:
        return {*client.list_topics(timeout=PATIENCE_SECONDS).topics} & {*named.values()}

    wait_until(lambda: not there())
    streams = {name: {"kind": "stream", "name": name} for name in ("a-both", "b-both", "b-foreign")}
    resources = [it | stream("x") | {"topic": named[name[2:]]} for name, it in streams.items()]
    answer = protected.editor.put("/v1/config", json={"resources": resources})
    assert answer.is_success, answer.text
    wait_until(lambda: there() == {named["both"]})
    # It would delete the streams of others.
    pruned = protected.editor.put(
        "/v1/config", json={"resources": [own | stream("t-two")]}, params={"prune": "true"}
    )
    assert pruned.status_code == 403
    assert protected.viewer.get("/v1/streams/b-two").is_success


def test_every_write_has_an_audit_record(protected: Protected) -> None:
    editor = protected.editor
    assert editor.put("/v1/streams/a-log", json=stream("t-log")).is_success
    created = editor.put("/v1/conditions/a-log", json=pair("a-log"))
    assert created.is_success
    assert editor.put("/v1/conditions/a-log/pause").is_success
    assert editor.put("/v1/conditions/a-log/resume").is_success
    changed = pair("a-log") | {"threshold": 0.75}
    assert editor.put("/v1/conditions/a-log", json=changed).is_success
    # Without a change nothing is written, and a trial writes nothing.
    assert editor.put("/v1/conditions/a-log", json=changed).is_success
    assert editor.put(
        "/v1/conditions/a-log", json=pair("a-log"), params={"dry_run": "true"}
    ).is_success
    assert editor.put("/v1/conditions/a-log/resume").is_success
    assert editor.post("/v1/streams/a-log/reset-watermark").is_success
    assert editor.delete("/v1/conditions/a-log").is_success
    found = audited(protected, "a-log", 7)
    actions = [(it["kind"], it["action"]) for it in found]
    assert actions == [
        ("stream", "created"),
        ("condition", "created"),
        ("condition", "paused"),
        ("condition", "resumed"),
        ("condition", "changed"),
        ("stream", "watermark_reset"),
        ("condition", "deleted"),
    ]
    who = {"name": "edgar", "role": "editor", "method": "key", "names": ["a-"]}
    assert [it["who"] for it in found] == [{**who, "key_id": protected.editor_key_id}] * len(found)
    assert {it["address"] for it in found} == {"127.0.0.1"}
    _, first, paused, _, other, reset, deleted = found
    assert (first["before"], first["after"]["document"]["threshold"]) == (None, "0.5")
    assert first["config_offset"] == int(created.headers["X-Config-Offset"])
    assert (paused["before"]["paused"], paused["after"]["paused"]) == (False, True)
    assert other["before"]["document"]["threshold"] == "0.5"
    assert other["after"]["document"]["threshold"] == "0.75"
    assert reset["config_offset"] is None
    assert (deleted["before"]["document"]["threshold"], deleted["after"]) == ("0.75", None)


def test_viewer_compares_a_configuration_and_does_not_write_it(protected: Protected) -> None:
    body = {"resources": [{"kind": "stream", "name": "a-dry", **stream("t-dry")}]}
    before = protected.viewer.get("/v1/config").headers["ETag"]
    compared = protected.viewer.put("/v1/config", json=body, params={"dry_run": "true"})
    assert compared.status_code == 200
    assert compared.json()["created"] == [{"kind": "stream", "name": "a-dry"}]
    assert compared.headers["ETag"] == before
    refused = protected.viewer.put("/v1/config", json=body)
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert protected.viewer.get("/v1/config").headers["ETag"] == before


def test_configuration_has_a_record_for_each_change(protected: Protected) -> None:
    resources = [
        {"kind": "stream", "name": "a-set", **stream("t-set")},
        {"name": "a-set", **pair("a-set")},
    ]
    written = protected.admin.put("/v1/config", json={"resources": resources})
    assert written.is_success
    found = audited(protected, "a-set", 2)
    assert [(it["kind"], it["action"]) for it in found] == [
        ("stream", "created"),
        ("condition", "created"),
    ]
    last = int(written.headers["X-Config-Offset"])
    assert [it["config_offset"] for it in found] == [last - 1, last]


def test_refused_write_has_no_record(protected: Protected) -> None:
    before = len(audit(protected))
    assert protected.viewer.put("/v1/streams/a-no", json=stream("t")).status_code == 403
    assert protected.editor.put("/v1/streams/b-no", json=stream("t")).status_code == 403
    assert protected.editor.put("/v1/streams/a-no", json={}).status_code == 422
    assert len(audit(protected)) == before


def test_token_of_the_issuer_is_accepted_and_audited(protected: Protected) -> None:
    client, issuer = protected.service.client, protected.issuer
    token = {"Authorization": f"Bearer {issuer.token(sub='grace', roles=['editor'])}"}
    assert client.put("/v1/streams/a-token", json=stream("t"), headers=token).is_success
    (found,) = audited(protected, "a-token", 1)
    who: dict[str, object] = {
        "name": "grace",
        "role": "editor",
        "method": "token",
        "names": [],
        "key_id": None,
    }
    assert found["who"] == who
    old = {"Authorization": f"Bearer {issuer.token(exp=1_700_000_000)}"}
    assert client.get("/v1/streams", headers=old).status_code == 401
    assert client.get("/v1/streams", headers={"X-API-Key": issuer.token()}).is_success


def test_token_of_a_role_with_a_prefix_has_the_rights_of_such_a_key(protected: Protected) -> None:
    client = protected.service.client
    text = protected.issuer.token(sub="grace", roles=["payments"])
    token = {"Authorization": f"Bearer {text}"}
    assert protected.editor.put("/v1/streams/a-by-key", json=stream("t")).status_code == 201
    created = client.put("/v1/streams/a-by-token", json=stream("t"), headers=token)
    assert created.status_code == 201
    assert protected.admin.put("/v1/streams/b-token", json=stream("t")).status_code == 201
    resources = [{"kind": "stream", "name": name, **stream("t")} for name in ("a-new", "b-new")]
    for method, path, body in (
        ("PUT", "/v1/streams/b-token", stream("t-other")),
        ("PUT", "/v1/streams/b-unknown", stream("t")),
        ("DELETE", "/v1/streams/b-token", None),
        ("POST", "/v1/streams/b-token/reset-watermark", None),
        ("PUT", "/v1/config", {"resources": resources}),
        ("PUT", "/v1/job/slots", {"slots": 3}),
    ):
        refused = client.request(method, path, json=body, headers=token)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301), path
    (by_key,), (by_token,) = (audited(protected, it, 1) for it in ("a-by-key", "a-by-token"))
    assert by_key["who"]["names"] == ["a-"]
    own = {"name": "grace", "method": "token", "key_id": None}
    assert by_token["who"] == by_key["who"] | own
    assert by_token.keys() == by_key.keys()
    same = ("action", "kind", "address", "before")
    assert [by_token[it] for it in same] == [by_key[it] for it in same]
    assert client.delete("/v1/streams/a-by-token", headers=token).is_success
    assert audited(protected, "b-token", 1)[1:] == []


def test_audit_record_has_the_address_of_the_connection(protected: Protected) -> None:
    # From this machine, from which servers believe such headers.
    headers = {"X-Forwarded-For": "9.9.9.9", "X-Real-IP": "9.9.9.9", "Forwarded": "for=9.9.9.9"}
    path = "/v1/streams/a-forwarded"
    assert protected.editor.put(path, json=stream("t"), headers=headers).is_success
    (found,) = audited(protected, "a-forwarded", 1)
    assert found["address"] == "127.0.0.1"


def test_nothing_is_written_without_its_audit_record(kafka_bootstrap: str, tmp_path: Path) -> None:
    key, text = new_key("ada", "admin", (), NOW_US)
    path = tmp_path / "keys.json"
    write_keys(path, [key])
    settings = fresh_settings(kafka_bootstrap, keys_file=path, requests_per_second=0)
    # The broker refuses every record of the audit topic: they are larger.
    create_topics(kafka_bootstrap, {settings.topics.audit: 1}, {"max.message.bytes": "100"})
    with running(settings) as service:
        headers = {"Authorization": f"Bearer {text}"}
        single = service.client.put("/v1/streams/one", json=stream("t"), headers=headers)
        resources = [{"kind": "stream", "name": "two", **stream("t")}]
        whole = service.client.put("/v1/config", json={"resources": resources}, headers=headers)
        for answer in (single, whole):
            assert (answer.status_code, answer.json()["error_code"]) == (503, 50301)
            assert "nothing was written" in answer.json()["detail"]
        found = service.client.get("/v1/config", headers=headers).json()
        assert found == {"resources": []}


def test_readiness_reports_an_unusable_file_of_keys(kafka_bootstrap: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, text = new_key("vera", "viewer", (), NOW_US)
    write_keys(path, [key])
    with running(fresh_settings(kafka_bootstrap, keys_file=path)) as service:
        known = {"Authorization": f"Bearer {text}"}
        assert readiness(service.client, known)["access_problem"] is None
        path.write_text("{")
        found = readiness(service.client, known)
        assert_names(found["access_problem"], "file of keys", "last valid keys")
        assert str(path) not in json.dumps(found)
        for stranger in ({}, {"Host": "evil.example"}, {**known, "Host": "evil.example"}):
            assert readiness(service.client, stranger) == {"ready": True}


def test_live_stream_ends_with_the_rights_of_its_caller(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    key, text = new_key("vera", "viewer", (), NOW_US)
    path = tmp_path / "keys.json"
    write_keys(path, [key])
    settings = fresh_settings(kafka_bootstrap, keys_file=path, requests_per_second=0)
    with running(settings) as service:
        client = service.client
        client.headers["Authorization"] = f"Bearer {text}"
        alarms = settings.topics.alarms
        with listening(client) as stream:
            produce(kafka_bootstrap, alarms, [result(1)])
            assert [it.data["record"]["number"] for it in stream.take(1)] == [1]
            write_keys(path, [])
            produce(kafka_bootstrap, alarms, [result(2)])
            assert stream.rest() == []


def test_caller_opens_half_of_the_live_streams(kafka_bootstrap: str, tmp_path: Path) -> None:
    made = [new_key(name, "viewer", (), NOW_US) for name in ("vera", "vic")]
    path = tmp_path / "keys.json"
    write_keys(path, [key for key, _ in made])
    settings = fresh_settings(
        kafka_bootstrap, keys_file=path, requests_per_second=0, alarm_readers=2
    )
    with running(settings) as service, ExitStack() as streams:
        first, second = (
            httpx.Client(
                base_url=service.client.base_url,
                timeout=PATIENCE_SECONDS,
                headers={"Authorization": f"Bearer {text}"},
            )
            for _, text in made
        )
        for client in (first, second):
            streams.enter_context(client)
        streams.enter_context(listening(first))
        refused = first.get("/v1/alarms", headers=ACCEPT)
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50305)
        assert_names(refused.json()["detail"], 1, "key vera")
        opened = streams.enter_context(listening(second))
        produce(kafka_bootstrap, settings.topics.alarms, [result(1)])
        assert [it.data["record"]["number"] for it in opened.take(1)] == [1]


def test_address_opens_half_of_the_live_streams_of_an_open_service(kafka_bootstrap: str) -> None:
    settings = fresh_settings(
        kafka_bootstrap,
        host="0.0.0.0",  # noqa: S104 - the test's service listens on loopback all the same
        open_to_everyone=True,
        requests_per_second=0,
        alarm_readers=2,
    )
    with running(settings) as service, ExitStack() as streams:
        streams.enter_context(listening(service.client))
        refused = service.client.get("/v1/alarms", headers=ACCEPT)
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50305)
        assert "1 live feeds of address 127.0.0.1 are open" in refused.json()["detail"]
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
        base_url = service.client.base_url
        other = httpx.Client(base_url=base_url, transport=elsewhere, timeout=PATIENCE_SECONDS)
        opened = streams.enter_context(listening(streams.enter_context(other)))
        produce(kafka_bootstrap, settings.topics.alarms, [result(1)])
        assert [it.data["record"]["number"] for it in opened.take(1)] == [1]


def test_live_stream_ends_with_the_token_of_its_caller(kafka_bootstrap: str) -> None:
    passed_us = 0
    with running_issuer() as issuer:
        settings = fresh_settings(
            kafka_bootstrap,
            oidc_issuer=issuer.url,
            oidc_audience=AUDIENCE,
            requests_per_second=0,
        )
        # The service's clock; the library that verifies the token has its own.
        with running(settings, now_us=lambda: time.time_ns() // 1000 + passed_us) as service:
            client = service.client
            client.headers["Authorization"] = f"Bearer {issuer.token()}"
            alarms = settings.topics.alarms
            with listening(client) as stream:
                produce(kafka_bootstrap, alarms, [result(1)])
                assert [it.data["record"]["number"] for it in stream.take(1)] == [1]
                # The token lasts for an hour.
                passed_us = 3_700_000_000
                produce(kafka_bootstrap, alarms, [result(2)])
                assert stream.rest() == []
