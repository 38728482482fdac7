"""Messages about missing rights."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from kafka_client.rights import is_missing_right, with_right
from tests.support.messages import assert_names

GRANT = 'grant it ("Rights in Kafka" in docs/configuration.md)'


@pytest.mark.parametrize(
    ("code", "name", "shown"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "t", "topic t"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, None, "topic"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "g", "group g"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "x.0", "transactional-id x.0"),
    ],
)
def test_missing_right_is_named(code: int, name: str | None, shown: str) -> None:
    named = with_right(KafkaError(code), "Write", name, "ada")
    assert is_missing_right(named)
    assert named.code() == code
    assert named.str().startswith(f"{shown}: ")
    assert_names(named.str(), "user ada", "right Write", GRANT)


def test_other_errors_are_unchanged() -> None:
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "gone")
    assert not is_missing_right(error)
    assert with_right(error, "Read", "t", "ada") is error
