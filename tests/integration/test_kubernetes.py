"""The pods of deploy/kubernetes on this machine: a read-only root, another user, few rights."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from cli.stack.broker import free_port
from service.access.keys import new_key, write_keys
from tests.support import manifests
from tests.support.command import coincide
from tests.support.files import visible_to_others
from tests.support.manifests import build, find
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.pods import Pod, reason_to_skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REASON = manifests.reason_to_skip() or reason_to_skip()
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]

NOW_US = 1_767_225_600_000_000
RESOURCES = """\
{kind: stream, name: acoustic, topic: acoustic, max_uncertainty: 1s, max_delay: 1s, clock: replay}
---
{kind: stream, name: seismic, topic: seismic, max_uncertainty: 1s, max_delay: 1s, clock: replay}
---
{kind: mutual_deadline, name: near, a: acoustic, b: seismic, window: 2s, threshold: "0.6"}
"""


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, dict[str, str]]:
    """Return the Secrets of an installation: the file of keys, and the key of a viewer."""
    made = {role: new_key(role, role, (), NOW_US) for role in ("admin", "viewer")}
    path = tmp_path / "keys.json"
    write_keys(path, [key for key, _ in made.values()])
    return {
        "coincide-keys": {"keys.json": path.read_text()},
        "coincide-viewer": {"key": made["viewer"][1]},
        "admin": {"key": made["admin"][1]},
    }


@pytest.fixture
def pods(
    kafka_bootstrap: str,
    topic_prefix: str,
    secrets: dict[str, dict[str, str]],
    tmp_path: Path,
) -> Iterator[tuple[Pod, Pod]]:
    """Return the pods of the service and of the job; neither is started."""
    objects = build()
    port = str(free_port())
    changes = {
        "COINCIDE_BOOTSTRAP": kafka_bootstrap,
        "COINCIDE_PREFIX": topic_prefix,
        "COINCIDE_PORT": port,
        "COINCIDE_URL": f"http://127.0.0.1:{port}",
        "COINCIDE_REPLICATION_FACTOR": "1",
    }
    owners = {"service": ("Deployment", "coincide"), "job": ("StatefulSet", "coincide-job")}
    with ExitStack() as stack:
        made = []
        for name, (kind, owner) in owners.items():
            folder = tmp_path / name
            folder.mkdir()
            found = find(objects, kind, owner)
            pod = Pod(objects, found, folder, secrets, changes)
            stack.callback(show, pod)
            stack.callback(pod.stop)
            made.append(pod)
        yield made[0], made[1]


def show(pod: Pod) -> None:
    """Print the end of the log, which pytest shows on failure."""
    if pod.process.log_path.exists():
        print(f"--- {pod.process.log_path}\n{pod.log[-3000:]}")  # noqa: T201 - see above


def wait_until_ready(pod: Pod, said: str) -> None:
    """Wait until the pod has logged this and its readiness probe succeeds."""
    # A probe takes most of a core: none before the process can be ready.
    pod.process.wait_until(
        lambda: said in pod.log and pod.probe("readinessProbe").returncode == 0, PATIENCE_SECONDS
    )


def test_service_and_job_work_without_rights_on_a_read_only_root(
    pods: tuple[Pod, Pod], secrets: dict[str, dict[str, str]]
) -> None:
    service, job = pods
    service.start()
    patient = ("--timeout", str(PATIENCE_SECONDS))
    wait_until_ready(service, "Uvicorn running")
    assert service.probe("livenessProbe", *patient).returncode == 0
    # The container is as its manifest says.
    assert service.execute("id", "-u").stdout == "10001\n"
    for place in ("/etc", "/var/lib/coincide", "/etc/coincide/keys"):
        refused = service.execute("touch", f"{place}/new")
        assert "Read-only file system" in refused.stderr
    rights = service.execute("grep", "CapEff", "/proc/self/status").stdout
    assert rights.split() == ["CapEff:", "0" * 16]

    job.start()
    wait_until_ready(job, "batch 0 completed")
    for name in ("startupProbe", "livenessProbe"):
        done = job.probe(name, *patient)
        assert done.returncode == 0, done.stderr

    environment = {
        "COINCIDE_BOOTSTRAP": service.variables["COINCIDE_BOOTSTRAP"],
        "COINCIDE_PREFIX": service.variables["COINCIDE_PREFIX"],
        "COINCIDE_URL": job.variables["COINCIDE_URL"],
        "COINCIDE_API_KEY": secrets["admin"]["key"],
    }

    def run(*arguments: str, given: str | None = None) -> str:
        done = coincide(*arguments, environment=environment, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("apply", "-f", "-", given=RESOURCES)
    for stream in ("acoustic", "seismic"):
        event = {"id": f"{stream}-1", "key": "k", "earliest": 0, "latest": 500_000}
        run("produce", "-", "--stream", stream, given=json.dumps(event))
    (alarm,) = map(json.loads, run("tail", "--from-beginning", "-n", "1", "--json").splitlines())
    assert (alarm["a"]["id"], alarm["b"]["id"]) == ("acoustic-1", "seismic-1")

    # The checkpoint is on the volume, and private.
    checkpoint = job.folder / "volumes" / "state" / "checkpoint"
    assert (checkpoint / "query" / "offsets" / "0").is_file()
    assert visible_to_others(checkpoint) == []
    assert "has the mode" not in job.log
    # A stop between two batches, which leaves no folder of the job in /tmp.
    assert job.stop() == 0
    assert list((job.folder / "volumes" / "tmp").glob("coincide-*")) == []
    # The service reports that the job does not run: its own check fails, even the lenient one.
    environment["COINCIDE_API_KEY"] = secrets["coincide-viewer"]["key"]
    wait_until(
        lambda: coincide("health", "job", "--lenient", environment=environment).returncode == 1
    )
    # uvicorn raises the signal again after an orderly stop.
    assert service.stop() == -signal.SIGTERM
    assert "Application shutdown complete" in service.log
