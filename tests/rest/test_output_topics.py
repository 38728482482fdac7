"""Topics that conditions and streams may use, and topics that they may not use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from correlation.errors import InvalidFieldError
from correlation.resources.topics import Topics
from service.errors import InvalidDocumentError
from service.settings import Settings
from service.topic_rules import TopicRules
from service.topics import TopicKeeper
from tests.rest.running import Service, fresh_settings, running
from tests.support.kafka import create_topics
from tests.support.messages import naming
from tests.support.patience import wait_until

if TYPE_CHECKING:
    import httpx

    from correlation.resources.records import ResourceKind
    from kafka_client.clients import UserAdmin

pytestmark = pytest.mark.kafka


def pair(topic: str | None) -> dict[str, Any]:
    return {
        "kind": "mutual_deadline",
        "a": "x",
        "b": "x",
        "window": "2s",
        "threshold": 0.7,
        "output_topic": topic,
    }


def answers(client: httpx.Client, topic: str | None) -> list[list[dict[str, str]]]:
    """Return what is wrong with the output topic, as each way to ask says."""
    body = {"condition": pair(topic)}
    found = [client.post("/v1/conditions:validate", json=body).json()]
    found += [
        client.put("/v1/conditions/c", json=pair(topic), params=params).json()
        for params in ({"dry_run": "true"}, {})
    ]
    return [it.get("errors", []) for it in found]


@pytest.fixture(scope="module")
def client(service: Service) -> httpx.Client:
    document = {
        "topic": f"{service.settings.prefix}-events",
        "max_uncertainty": "2s",
        "max_delay": "1s",
    }
    assert service.client.put("/v1/streams/x", json=document).is_success
    return service.client


def check_refused(client: httpx.Client, topic: str, problem: str, remedy: str) -> None:
    for errors in answers(client, topic):
        (error,) = errors
        assert error["field"] == "output_topic"
        assert problem in error["problem"]
        assert remedy in error["remedy"]
    assert client.get("/v1/conditions/c").status_code == 404


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", "__transaction_state", "__anything", "__share_group_state"]
)
def test_internal_topics_are_refused(client: httpx.Client, topic: str) -> None:
    check_refused(client, topic, "internal topic of Kafka", "use another topic")
    document = {"topic": topic, "max_uncertainty": "2s", "max_delay": "1s"}
    answer = client.put("/v1/streams/internal", json=document)
    assert answer.status_code == 422
    assert [it["field"] for it in answer.json()["errors"]] == ["topic"]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_topics_are_refused(service: Service, client: httpx.Client, policy: str) -> None:
    topic = f"{service.settings.prefix}-{policy.replace(',', '-')}"
    create_topics(service.settings.bootstrap, {topic: 1}, {"cleanup.policy": policy})
    check_refused(client, topic, "is compacted", "cleanup.policy=delete")
    # A stream may read one.
    document = {"topic": topic, "max_uncertainty": "2s", "max_delay": "1s"}
    assert client.put("/v1/streams/compacted", json=document).is_success


def test_topics_of_another_installation_are_refused(
    kafka_bootstrap: str, service: Service, client: httpx.Client
) -> None:
    other = fresh_settings(kafka_bootstrap)
    with running(other):
        pass
    for topic in other.topics.reserved():
        check_refused(client, topic, f"with the prefix {other.prefix}", "use another topic")
    for topic in service.settings.topics.reserved():
        check_refused(client, topic, "internal topic of Coincide", "use another topic")
    # Both kinds of alarms may be written where alarms go.
    for topic in (other.topics.alarms, service.settings.topics.alarms):
        assert answers(client, topic) == [[], [], []]
    assert client.delete("/v1/conditions/c").status_code == 204


def test_topics_of_an_installation_of_an_earlier_version_are_refused(
    service: Service, client: httpx.Client
) -> None:
    other = Topics(f"{service.settings.prefix}-earlier")
    there = {*other.common()} - {other.state}
    create_topics(service.settings.bootstrap, dict.fromkeys(there, 1))
    check_refused(client, other.late, f"with the prefix {other.prefix}", "use another topic")


@pytest.mark.parametrize(
    "name", ["late", "heartbeats", "dead-letter", "config", "metrics", "state"]
)
def test_ordinary_topic_with_such_a_name_is_allowed(
    service: Service, client: httpx.Client, name: str
) -> None:
    topics = Topics(f"{service.settings.prefix}-plain")
    topic = f"{topics.prefix}.{name}"
    create_topics(service.settings.bootstrap, {topic: 1})
    assert answers(client, topic) == [[], [], []]
    assert client.delete("/v1/conditions/c").status_code == 204


def test_only_listed_topics_are_allowed_where_there_is_a_list(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    prefix = settings.prefix
    listed = settings.model_copy(update={"output_topics": (f"{prefix}-siem", f"{prefix}-out-*")})
    document = {"topic": f"{prefix}-events", "max_uncertainty": "2s", "max_delay": "1s"}
    with running(listed) as service:
        client = service.client
        assert client.put("/v1/streams/x", json=document).is_success
        for topic in (f"{prefix}-other", f"{prefix}-siem-2"):
            check_refused(
                client,
                topic,
                "not one of",
                f"use one of {prefix}-siem, {prefix}-out-*; or change COINCIDE_OUTPUT_TOPICS",
            )
        for allowed in (f"{prefix}-siem", f"{prefix}-out-a", settings.topics.alarms, None):
            assert answers(client, allowed) == [[], [], []]


class CountingKeeper(TopicKeeper):
    """A keeper of topics that counts its requests to the broker."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.requests = 0

    def _client(self) -> UserAdmin:
        self.requests += 1
        return super()._client()


def test_topics_of_a_configuration_need_few_requests(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    there, compacted, missing = (
        [f"{settings.prefix}-{name}-{it}" for it in range(40)] for name in ("there", "log", "new")
    )
    create_topics(kafka_bootstrap, dict.fromkeys(there, 1))
    create_topics(kafka_bootstrap, dict.fromkeys(compacted, 1), {"cleanup.policy": "compact"})
    keeper = CountingKeeper(settings)
    rules = TopicRules(settings, keeper)
    kinds: list[ResourceKind] = ["stream", "condition"]
    survey = rules.survey(
        [(kind, it) for it in [*there, *compacted, *missing, None] for kind in kinds]
    )
    assert keeper.requests == 3
    for kind in kinds:
        assert {survey.check(kind, it) for it in [*there, None]} == {None}
        assert [survey.check(kind, it) for it in missing] == missing
    assert {survey.check("stream", it) for it in compacted} == {None}
    for it in compacted:
        with pytest.raises(InvalidFieldError, match="is compacted"):
            survey.check("condition", it)
    rules.create(dict.fromkeys(missing, "stream"))
    assert keeper.requests == 4
    wait_until(lambda: keeper.names() >= {*missing})
    # A refused topic is named, also among others.
    further = f"{settings.prefix}-z"
    wrong = {further: kinds[0], f"{settings.prefix} not a name": kinds[0]}
    with pytest.raises(InvalidDocumentError, match=r"did not create '.* not a name'"):
        rules.create(wrong)
    # Kafka would accept both in one request.
    alike: dict[str, ResourceKind] = {f"{settings.prefix}.{it}": "condition" for it in "ab"}
    alike |= {f"{settings.prefix}_b": "condition"}
    with pytest.raises(InvalidDocumentError, match="did not create") as caught:
        rules.create(alike)
    assert [it.field for it in caught.value.problems] == ["output_topic"]


def test_topics_that_their_names_exclude_are_not_described(kafka_bootstrap: str) -> None:
    other = fresh_settings(kafka_bootstrap)
    with running(other):
        pass
    settings = fresh_settings(kafka_bootstrap)
    keeper = CountingKeeper(settings)
    own = settings.topics
    excluded: list[tuple[ResourceKind, str]] = [
        *(("condition", it) for it in ("__consumer_offsets", own.late, own.alarms)),
        *(("stream", it) for it in ("__consumer_offsets", own.late, own.alarms)),
    ]
    TopicRules(settings, keeper).survey(excluded)
    assert keeper.requests == 0
    listed = settings.model_copy(update={"output_topics": ("siem",)})
    TopicRules(listed, keeper).survey([("condition", other.topics.late)])
    assert keeper.requests == 0
    # The names of all topics show that another installation has it.
    survey = TopicRules(settings, keeper).survey([("condition", other.topics.late)])
    assert keeper.requests == 1
    with pytest.raises(InvalidFieldError, match=naming(other.topics.late, other.prefix)):
        survey.check("condition", other.topics.late)


def test_list_of_output_topics_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COINCIDE_OUTPUT_TOPICS", '["siem", "alarms-*", "*"]')
    assert Settings().output_topics == ("siem", "alarms-*", "*")
    for wrong in ('["a b"]', '["*-alarms"]', '[""]', "siem"):
        monkeypatch.setenv("COINCIDE_OUTPUT_TOPICS", wrong)
        with pytest.raises(ValidationError, match="output_topics"):
            Settings()
