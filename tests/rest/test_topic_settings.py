"""Retention of transaction ends on compacted topics, including an existing metrics topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from cli.stack.broker import EmbeddedBroker
from tests.rest.running import fresh_settings, running
from tests.support.kafka import create_topics
from tests.support.patience import PATIENCE_SECONDS
from tests.support.service_reports import readiness

if TYPE_CHECKING:
    from pathlib import Path

    from service.settings import Settings

pytestmark = pytest.mark.kafka
TEN_YEARS, HOUR, SHORT = "315360000000", "3600000", "600000"
AUTHORISING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def retention(settings: Settings, topic: str) -> str | None:
    admin = AdminClient({"bootstrap.servers": settings.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(PATIENCE_SECONDS)
    value: str | None = found["delete.retention.ms"].value
    return value


def create_metrics_topic(settings: Settings, retention_ms: str) -> None:
    """Create the topic as an earlier version did, but for the retention."""
    config = {
        "cleanup.policy": "compact",
        "max.message.bytes": str(16 * 1024 * 1024),
        "delete.retention.ms": retention_ms,
    }
    create_topics(settings.bootstrap, {settings.topics.metrics: 1}, config)


def test_only_the_config_topic_remembers_deletions_for_years(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    with running(settings):
        assert retention(settings, settings.topics.config) == TEN_YEARS
        for topic in (settings.topics.metrics, settings.topics.state):
            assert retention(settings, topic) == HOUR


@pytest.mark.parametrize(("found", "kept"), [(TEN_YEARS, HOUR), (SHORT, SHORT)])
def test_retention_that_an_earlier_version_set_is_altered_at_start(
    kafka_bootstrap: str, found: str, kept: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = fresh_settings(kafka_bootstrap)
    create_metrics_topic(settings, found)
    with caplog.at_level("INFO", "service.topics"), running(settings) as service:
        assert readiness(service.client)["topic_problems"] == []
    assert retention(settings, settings.topics.metrics) == kept
    altered = f"{settings.topics.metrics}: delete.retention.ms altered from {found} to {kept}"
    assert (altered in caplog.text) == (found != kept)


def test_retention_that_the_service_may_not_alter_is_a_topic_problem(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "broker", properties=AUTHORISING) as broker:
        settings = fresh_settings(broker.bootstrap)
        metrics = settings.topics.metrics
        create_metrics_topic(settings, TEN_YEARS)
        allow_all_but_altering(broker.bootstrap, metrics)
        with running(settings) as service:
            assert readiness(service.client)["topic_problems"] == [
                {
                    "topic": metrics,
                    "setting": "delete.retention.ms",
                    "found": TEN_YEARS,
                    "needed": HOUR,
                }
            ]
        assert retention(settings, metrics) == TEN_YEARS


def allow_all_but_altering(bootstrap: str, topic: str) -> None:
    """Let everybody do with a topic what the service does, but not alter it."""
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*")
    allowed = (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
    )
    bindings = [AclBinding(*place, operation, AclPermissionType.ALLOW) for operation in allowed]
    bindings.append(AclBinding(*place, AclOperation.ALTER_CONFIGS, AclPermissionType.DENY))
    # Kept in a variable: requests end with their client.
    client = AdminClient({"bootstrap.servers": bootstrap})
    for created in client.create_acls(bindings).values():
        created.result(PATIENCE_SECONDS)
