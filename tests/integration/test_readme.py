"""The commands of README.md and docs/, run unchanged in a new user's shell.

Blocks marked `sh` are run; only addresses are replaced. Unmarked blocks show output, or need an
environment that the tests do not have (a cluster, Docker).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest
from rich.console import Console

from cli.client.rest import ServiceClient
from cli.stack.options import StackOptions
from cli.stack.stack import LocalStack
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings
from tests.support.command import running_service
from tests.support.job import FEW_BATCHES
from tests.support.kafka import read_committed
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
BINARIES = Path(sys.executable).parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "tests/README.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))),
)
START = "docs/getting-started.md"
# Two screens of 45 lines, minus the height of the picture.
FIRST_LINES = 70
COLUMNS = 100


def _blocks(page: str, mark: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [found.group(2) for found in BLOCK.finditer(text) if found.group(1) == mark]


def _shell(commands: str, environment: Mapping[str, str], folder: Path = ROOT) -> str:
    """Run commands as typed into a shell with the project's environment; return their output."""
    # The commands are the project's own.
    done = subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", commands],  # noqa: S607 - the user's own shell
        cwd=folder,
        env={**os.environ, "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run what `coincide up` runs, on ports of its own and with few batches."""
    options = StackOptions(tmp_path_factory.mktemp("stack"), broker_port=0, service_port=0)
    with pytest.MonkeyPatch.context() as patch:
        more = {"COINCIDE_WRITE_TIMEOUT_SECONDS": str(SERVICE_SECONDS)}
        for name, value in {**FEW_BATCHES, **more}.items():
            patch.setenv(name, value)
        with LocalStack(options, Console(stderr=True)) as running:
            yield running


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_commands_of_getting_started_and_readme_give_the_alarm_that_they_show(
    stack: LocalStack, tmp_path: Path
) -> None:
    environment = {"COINCIDE_BOOTSTRAP": stack.bootstrap, "COINCIDE_URL": stack.url}
    (condition,) = _blocks("README.md", "json")
    (tmp_path / "footsteps.json").write_text(condition, encoding="utf-8")
    pages = {page: _blocks(page, "sh") for page in (START, "README.md")}
    outputs: dict[str, list[str]] = {page: [] for page in pages}
    assert [len(blocks) for blocks in pages.values()] == [5, 2]
    for page, blocks in pages.items():
        for block in blocks:
            here = block.replace("http://127.0.0.1:8080", stack.url)
            outputs[page].append(_shell(here, environment, tmp_path))
    # The condition of the README is that of the page, not a new version.
    assert json.loads(outputs["README.md"][0])["version"] == 1
    (resources,) = _blocks(START, "yaml")
    # The file says the same as the commands before it.
    applied = _shell(f"coincide apply -f - <<'END'\n{resources}END\n", environment)
    assert [line.split()[0] for line in applied.splitlines()] == ["unchanged"] * 3
    for page, alarm in ((START, outputs[START][4]), ("README.md", outputs["README.md"][1])):
        shown = next(block for block in _blocks(page, "") if "p=0.625" in block)
        assert _without_times(alarm) == _without_times(shown)
    with ServiceClient(stack.url) as service:

        def all_events_are_read() -> bool:
            status = service.get("/v1/conditions/footsteps/status")["streams"]
            return bool(status["seismic"]["buffered_events"] == 3)

        wait_until(all_events_are_read)
        assert service.get("/v1/conditions/footsteps/status")["alarms"] == 1
    assert len(read_committed(stack.bootstrap, "coincide.alarms")) == 1


def _without_times(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line.strip())


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_job_runs_under_spark_submit(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    (block,) = [found for found in _blocks("docs/deployment.md", "") if "spark-submit" in found]
    replaced = {
        "kafka:9092": kafka_bootstrap,
        "hdfs:///coincide/checkpoint": (tmp_path / "checkpoint").as_uri(),
        "COINCIDE_SLOTS=16": f"COINCIDE_SLOTS=2 COINCIDE_PREFIX={topic_prefix}",
        "/opt/coincide/bin/python": sys.executable,
        "spark://spark:7077": "local[2]",
    }
    for written, own in replaced.items():
        assert written in block
        block = block.replace(written, own)
    log_path = tmp_path / "submit.log"
    environment = {**os.environ, "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}"}
    with running_service(kafka_bootstrap, topic_prefix, tmp_path) as url, log_path.open("w") as log:
        # The commands are the project's own; in a group of their own, to be ended together.
        submitted = subprocess.Popen(  # noqa: S603
            ["bash", "-euo", "pipefail", "-c", block],  # noqa: S607 - the user's own shell
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            with ServiceClient(url) as service:
                wait_until(lambda: _runs(submitted, service, log_path))
        finally:
            os.killpg(submitted.pid, signal.SIGTERM)
            submitted.wait(PATIENCE_SECONDS)


def _runs(submitted: subprocess.Popen[bytes], service: ServiceClient, log_path: Path) -> bool:
    assert submitted.poll() is None, log_path.read_text(encoding="utf-8")[-4000:]
    job = service.get("/v1/job")
    # The record itself says that a batch went through workers, state and sink.
    return bool(job["up"] and job["batch"] is not None)


def test_security_settings_of_the_manual_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = _blocks("docs/configuration.md", "sh")
    # librdkafka reads the certificates when it checks the settings.
    block = block.replace("/etc/ssl/kafka-ca.pem", certifi.where())
    (tmp_path / "password").write_text("SECRET\n")
    block = block.replace("/run/secrets/kafka-password", str(tmp_path / "password"))
    listed = _shell(f"{block}\nenv -0", {})
    for entry in listed.split("\0"):
        name, _, value = entry.partition("=")
        if name.startswith("COINCIDE_"):
            monkeypatch.setenv(name, value)
    job = JobSettings()
    assert job.client_properties("test") == ServiceSettings().client_properties("test")
    assert job.kafka_properties["sasl.mechanisms"] == "SCRAM-SHA-512"
    assert job.kafka_properties["sasl.password"] == "SECRET"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for path, anchor in LINK.findall(BLOCK.sub("", text)):
        if path.startswith("https://"):
            continue
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        if anchor:
            assert anchor in _anchors(target.read_text(encoding="utf-8")), f"{path}#{anchor}"


def _anchors(text: str) -> set[str]:
    """Anchors of the headings, made as the usual viewers of Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_architecture_names_every_folder_of_the_project() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE))
    assert all((ROOT / folder).is_dir() for folder in named)
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= named


def test_readme_shows_an_alarm_on_its_first_two_screens() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, _ = re.split(r"^## (?!See it work)", text, maxsplit=1, flags=re.MULTILINE)
    assert first.count("![") == 1
    assert "p=0.625" in first
    assert sum(max(1, -(-len(line) // COLUMNS)) for line in first.splitlines()) <= FIRST_LINES


def test_readme_links_every_page_of_the_documentation() -> None:
    linked = {path for path, _ in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
    assert {page for page in PAGES if page.startswith("docs/")} <= linked
