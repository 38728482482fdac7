"""With the rights of the manual all works; without one of them, the error names it."""

from __future__ import annotations

import logging
import re
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from cli.errors import CliError
from service.errors import ServiceError
from spark_jobs.errors import SparkJobError
from tests.support.right_uses import USES, Installation, ListedRight, listed_rights
from tests.support.secured_kafka import SecuredBroker, User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.secured_kafka import Right

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

USERS = {
    "service": User("service", 'planted "service" \\ password', "SCRAM-SHA-512"),
    "job": User("job", "planted job password", "SCRAM-SHA-256"),
    "cli": User("cli", "planted cli password", "PLAIN"),
    "backup": User("backup", "planted backup password", "PLAIN"),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Return a secured broker whose users have no rights."""
    with SecuredBroker(tmp_path_factory.mktemp("secured"), USERS.values()) as broker:
        yield broker


@pytest.fixture(scope="module")
def installation(broker: SecuredBroker) -> Installation:
    """Return an installation whose users have the rights of the manual."""
    found = Installation(broker, USERS, f"r{uuid.uuid4().hex[:10]}")
    for user, rights in found.rights().items():
        broker.grant(USERS[user], rights)
    return found


def test_every_listed_right_has_a_use() -> None:
    listed = listed_rights()
    assert len(set(listed)) == len(listed)
    assert set(listed) == USES.keys()


@pytest.mark.parametrize(
    "listed",
    USES,
    ids=lambda it: " ".join((it[0], it[3], it[1], it[2].strip("`"))),
)
def test_missing_right_is_named(
    listed: tuple[str, str, str, str],
    broker: SecuredBroker,
    installation: Installation,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    user, right = USERS[listed[0]], installation.right(ListedRight(*listed))
    installation.logged = lambda: caplog.text

    def tried() -> str:
        caplog.clear()
        try:
            answer = USES[listed](installation, right.name)
        except (ServiceError, SparkJobError, CliError, KafkaException) as error:
            answer = error
        return f"{answer} {caplog.text}"

    with broker.without(user, right):
        said = tried()
    assert re.search(_message(right, user), said), said
    assert "not have the right" not in (said := tried()), said


def _message(right: Right, user: User) -> str:
    """Return the pattern of the message that names a right."""
    # Kafka's client does not name the group of a consumer, which is the only one of its process.
    group = r"group( \S+)?"
    other = rf"{right.resource} {re.escape(right.name.rstrip('*'))}\S*"
    # Kafka refuses Describe first if no other right to the resource includes it.
    operation = f"({right.operation}|Describe)"
    named = group if right.resource == "group" else other
    return rf"\b{named}: the Kafka user {user.name} does not have the right {operation}\b"
