"""Shared fixtures of all tests: a real Kafka, unique names, and Hypothesis profiles.

The tests use the broker at COINCIDE_TEST_BOOTSTRAP. Without this variable they start a broker with
Testcontainers if a Docker engine answers, or else the embedded broker. Without any broker the tests
fail; they are never skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from cli.stack.broker import EmbeddedBroker, answers
from tests.support.failures import pytest_configure  # noqa: F401 - a hook of pytest
from tests.support.java_cache import share_java_classes
from tests.support.kernel_cache import share_kernels
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tools import check_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# CI systems set CI, with which Hypothesis would try the same examples in every run.
_RANDOM = settings.get_profile("default")
# Numbers of examples of a property. Uncompiled kernels take up to a hundred times as long: they are
# tested with few.
_EXAMPLES = {"few": 3, "fast": 25, "thorough": 100, "deep": 2_000}
for _name, _count in _EXAMPLES.items():
    # Compiling a kernel inside the first example takes seconds: no deadline per example.
    settings.register_profile(
        _name,
        _RANDOM,
        max_examples=_count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Workers use the kernels that other workers have compiled.
share_kernels()
# Jobs use the classes of Java that other jobs have stored.
share_java_classes()

# Commands under test inherit an ignored SIGINT, which a background process of a shell has.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ENGINE_SECONDS = 10
_GIVEN_SECONDS = 30


# Folders of the tests that need Kafka or Spark, as the Makefile names them.
_STACKED = (Path(__file__).parent / "integration", Path(__file__).parent / "rest")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that start Spark first.

    They take longest. With the short files at the end, the processes end at about the same time.
    """
    for item in items:
        needs = item.get_closest_marker("kafka") or item.get_closest_marker("spark")
        if needs is None and {"kafka_bootstrap", "own_broker"} & set(_fixtures_of(item)):
            raise pytest.UsageError(f"{item.nodeid} uses a broker: mark it as kafka")
        if needs is not None and not any(it in item.path.parents for it in _STACKED):
            raise pytest.UsageError(f"{item.nodeid} is not in the folders of tests with a broker")
    starting_spark = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in starting_spark)


def _fixtures_of(item: pytest.Item) -> Sequence[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else ()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests without their tools, before their fixtures are made; in CI they fail."""
    check_tools(item)


@pytest.fixture(scope="session")
def kafka_bootstrap() -> Iterator[str]:
    """Return the address of a running Apache Kafka, one for the whole run."""
    given = os.environ.get("COINCIDE_TEST_BOOTSTRAP")
    if given:
        if not answers(given, timeout_seconds=_GIVEN_SECONDS):
            pytest.fail(f"no broker answers at COINCIDE_TEST_BOOTSTRAP={given}")
        yield given
    elif _docker_engine_answers():
        yield from _containerised_broker()
    else:
        with EmbeddedBroker() as broker:
            yield broker.bootstrap


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """Return an embedded broker of the test's own, started, to be killed and started again."""
    with EmbeddedBroker(data=tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def paused_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """Return an embedded broker of the test's own, started, to be paused.

    A broker whose session ends meanwhile reports for a moment that no broker is alive. A request
    that a client has begun may then stay without an answer (`kafka_client.renewed`).
    """
    session = {"broker.session.timeout.ms": str(2 * PATIENCE_SECONDS * 1000)}
    with EmbeddedBroker(data=tmp_path / "broker", properties=session) as broker:
        yield broker


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix of topic names that no other test uses."""
    return f"t{uuid.uuid4().hex[:10]}"


def _docker_engine_answers() -> bool:
    """Return whether a Docker engine runs; the client alone is not enough."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        # The path is the one the shell would take.
        asked = subprocess.run(  # noqa: S603
            [docker, "info"], capture_output=True, timeout=_ENGINE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def _containerised_broker() -> Iterator[str]:
    """Start a broker in a container."""
    # Imported here: only machines with a Docker engine pay for it.
    from testcontainers.kafka import KafkaContainer  # noqa: PLC0415

    container = (
        KafkaContainer()
        .with_kraft()
        .with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    )
    with container as running:
        yield running.get_bootstrap_server()
