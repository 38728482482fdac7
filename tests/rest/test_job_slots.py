"""The number of slots of the job: registered by REST, not part of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from cli.main import main
from correlation.limits import SLOTS_LIMIT
from tests.rest.running import fresh_settings, running
from tests.support.kafka import Sent, produce, read_committed
from tests.support.messages import assert_names
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
PATH = "/v1/job/slots"
# Far in the future, so that the job counts as alive for the whole run.
AT_US = 4_000_000_000_000_000


@pytest.fixture
def service(kafka_bootstrap: str) -> Iterator[Service]:
    """Return a service of one test."""
    with running(fresh_settings(kafka_bootstrap)) as found:
        yield found


def report(service: Service, **facts: object) -> None:
    """Write a record of the job, and wait until the service has read it."""
    value = orjson.dumps({"v": 1, "at": AT_US, "state": "running", **facts})
    produce(service.settings.bootstrap, service.settings.topics.metrics, [Sent(value, b"job")])
    wait_until(lambda: facts.items() <= _job(service.client).items())


def _job(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/v1/job").json()
    return found


def records(service: Service) -> list[tuple[bytes | None, bytes | None]]:
    topic = service.settings.topics.config
    return [(it.key, it.value) for it in read_committed(service.settings.bootstrap, topic)]


def test_number_is_written_once_and_changed(service: Service) -> None:
    client = service.client
    missing = client.get(PATH)
    assert (missing.status_code, missing.json()["error_code"]) == (404, 40401)
    dry = client.put(PATH, json={"slots": 4}, params={"dry_run": "true"})
    assert (dry.status_code, dry.json()["slots"], records(service)) == (201, 4, [])

    created = client.put(PATH, json={"slots": 4}, headers={"If-None-Match": "*"})
    assert created.status_code == 201
    assert created.headers["Location"] == PATH
    assert (created.json()["slots"], created.json()["version"]) == (4, 1)
    again = client.put(PATH, json={"slots": 4})
    assert (again.status_code, again.headers["ETag"]) == (200, created.headers["ETag"])
    assert len(records(service)) == 1

    stale = client.put(PATH, json={"slots": 2}, headers={"If-Match": '"77"'})
    assert (stale.status_code, stale.json()["error_code"]) == (412, 41201)
    changed = client.put(PATH, json={"slots": 2}, headers={"If-Match": created.headers["ETag"]})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    found = client.get(PATH)
    assert found.json() == changed.json()
    assert found.headers["ETag"] == changed.headers["ETag"]
    assert [key for key, _ in records(service)] == [b"job/slots"] * 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"slots": 0},
        {"slots": SLOTS_LIMIT + 1},
        {"slots": "2"},
        {"slots": 2.5},
        {"slots": True},
        {"slots": 2, "cores": 2},
    ],
)
def test_body_that_is_not_valid_is_refused(service: Service, body: dict[str, Any]) -> None:
    answer = service.client.put(PATH, json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == ("cores" if "cores" in body else "slots")
    assert error["remedy"]
    assert records(service) == []


def test_configuration_neither_contains_nor_deletes_it(service: Service) -> None:
    client = service.client
    assert client.put(PATH, json={"slots": 3}).is_success
    exported = client.get("/v1/config").json()
    assert exported == {"resources": []}
    pruned = client.put("/v1/config", json=exported, params={"prune": "true"})
    assert pruned.json()["deleted"] == []
    assert client.get(PATH).json()["slots"] == 3
    refused = client.put(
        "/v1/config", json={"resources": [{"kind": "job", "name": "slots", "slots": 1}]}
    )
    assert refused.status_code == 422


def test_job_shows_the_present_and_the_wanted_number(service: Service) -> None:
    client = service.client
    names = ("slots", "wanted_slots", "slots_problem")
    assert [_job(client)[it] for it in names] == [None, None, None]
    report(service, slots=2, wanted_slots=4, slots_problem="events wait")
    assert client.put(PATH, json={"slots": 3}).is_success
    # The reason is that of another number.
    assert [_job(client)[it] for it in names] == [2, 3, None]
    report(service, slots=2, wanted_slots=3, slots_problem="events wait still")
    assert [_job(client)[it] for it in names] == [2, 3, "events wait still"]


def run(
    service: Service, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Run the command; return its exit code and outputs."""
    with pytest.raises(SystemExit) as ended:
        main(["rescale", "--url", str(service.client.base_url), *arguments])
    written = capsys.readouterr()
    return int(ended.value.code or 0), written.out, written.err


def test_command_registers_the_number_and_waits_for_the_job(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = run(service, capsys, "--slots", "3")
    assert code == 0
    assert said.startswith("registered 3 slots: ")
    assert_names(said, "not run now")
    report(service, slots=2, wanted_slots=3, slots_problem="events still wait")
    code, _, said = run(service, capsys, "--slots", "3", "--wait", "--timeout", "0.1")
    assert code == 1
    first, *others, last = said.splitlines()
    assert first.startswith("registered 3 slots: ")
    assert_names(first, "which has 2")
    assert any(it.endswith(": events still wait") for it in others)
    assert last.startswith("error: ")
    assert_names(last, "3 slots", "0.1 s", "events still wait")
    report(service, slots=3, wanted_slots=3)
    code, out, said = run(service, capsys, "--slots", "3", "--wait", "--json")
    assert (code, said) == (0, "the job runs with 3 slots already\nthe job runs with 3 slots\n")
    assert orjson.loads(out) == {
        "slots": 3,
        "wanted_slots": 3,
        "slots_problem": None,
        "state": "running",
    }
    code, _, said = run(service, capsys, "--slots", "0")
    assert code == 2
    assert "--slots" in said
