"""Event topics over REST: created, created again, refused, and never our own topics."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tests.rest.running import Service, fresh_settings, running
from tests.rest.test_resources import fresh, head, pair, problem, put_stream, stream
from tests.support.kafka import create_topics
from tests.support.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.kafka


def test_event_topic_is_created_with_the_stream(service: Service) -> None:
    topic = f"{service.settings.prefix}-{fresh()}"
    put_stream(service, topic=topic)
    admin = AdminClient({"bootstrap.servers": service.settings.bootstrap})

    def partitions() -> int:
        found = admin.list_topics(timeout=PATIENCE_SECONDS).topics.get(topic)
        return 0 if found is None else len(found.partitions)

    wait_until(lambda: partitions() > 0)
    assert partitions() == 2


def test_topic_that_was_deleted_is_created_again_by_the_same_document(service: Service) -> None:
    topics = [f"{service.settings.prefix}-{fresh()}" for _ in range(2)]
    name, path = put_stream(service, topic=topics[0]), f"/v1/conditions/{fresh()}"
    documents = {
        f"/v1/streams/{name}": stream(service, topic=topics[0]),
        path: pair(name, name, output_topic=topics[1]),
    }
    service.client.put(path, json=documents[path])
    admin = AdminClient({"bootstrap.servers": service.settings.bootstrap})

    def there() -> set[str]:
        return set(admin.list_topics(timeout=PATIENCE_SECONDS).topics) & set(topics)

    wait_until(lambda: there() == set(topics))
    for deleted in admin.delete_topics(topics).values():
        deleted.result(PATIENCE_SECONDS)
    wait_until(lambda: not there())
    before = head(service)
    for found, document in documents.items():
        assert service.client.put(found, json=document, params={"dry_run": "true"}).is_success
    assert there() == set()
    for found, document in documents.items():
        answer = service.client.put(found, json=document)
        assert (answer.status_code, answer.json()["version"]) == (200, 1)
    wait_until(lambda: there() == set(topics))
    assert head(service) == before


def test_topic_that_the_broker_refuses_is_named(service: Service) -> None:
    # Kafka takes "." and "_" for the same in the names of its metrics.
    topic = f"{service.settings.prefix}.{fresh()}"
    put_stream(service, topic=topic)
    path = f"/v1/streams/{fresh()}"
    answer = service.client.put(path, json=stream(service, topic=topic.replace(".", "_")))
    assert problem(answer, 422, 42203) == ["topic"]
    assert service.client.get(path).status_code == 404


def test_topic_that_does_not_exist_is_refused_when_none_are_created(kafka_bootstrap: str) -> None:
    with running(fresh_settings(kafka_bootstrap, create_event_topics=False)) as service:
        client, alarms = service.client, service.settings.topics.alarms
        events = stream(service)["topic"]
        answer = client.put("/v1/streams/s", json=stream(service))
        assert problem(answer, 422, 42203) == ["topic"]
        create_topics(kafka_bootstrap, {events: 1})
        assert client.put("/v1/streams/s", json=stream(service)).status_code == 201
        answer = client.put("/v1/conditions/c", json=pair("s", "s", output_topic="nowhere"))
        assert problem(answer, 422, 42203) == ["output_topic"]
        answer = client.put("/v1/conditions/c", json=pair("s", "s", output_topic=alarms))
        assert answer.status_code == 201


def test_own_topics_are_not_for_events(service: Service) -> None:
    client, name, topics = service.client, fresh(), service.settings.topics
    a = put_stream(service)
    for topic in topics.all():
        answer = client.put(f"/v1/streams/{name}", json=stream(service, topic=topic))
        assert problem(answer, 422, 42204) == ["topic"]
        condition = pair(a, a, output_topic=topic)
        answer = client.put(f"/v1/conditions/{name}", json=condition)
        judged = client.post("/v1/conditions:validate", json={"condition": condition}).json()
        assert judged["valid"] == (topic == topics.alarms)
        if topic == topics.alarms:
            assert answer.status_code == 201
        else:
            assert problem(answer, 422, 42204) == ["output_topic"]


def test_alarms_may_become_events_of_another_stream_but_not_of_their_own(service: Service) -> None:
    client, path = service.client, f"/v1/conditions/{fresh()}"
    a, out = put_stream(service), f"{service.settings.prefix}-{fresh()}"
    same = pair(a, a, output_topic=stream(service)["topic"])
    assert problem(client.put(path, json=same), 422, 42203) == ["output_topic"]
    chained = pair(a, a, output_topic=out)
    assert client.put(path, json=chained).status_code == 201
    answer = client.put(f"/v1/streams/{a}", json=stream(service, topic=out))
    assert problem(answer, 422, 42203) == ["topic"]
    put_stream(service, topic=out)
    # The order of the two does not matter.
    assert client.put(path, json=chained).status_code == 200
