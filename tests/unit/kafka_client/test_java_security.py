"""The security of librdkafka's clients in the names of the Java client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from kafka_client.java_security import java_security, untranslated
from kafka_client.settings import describe
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from kafka_client.settings import Properties

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {"sasl.username": "coincide", "sasl.password": 'a"b\\c'}
QUOTED = 'username="coincide" password="a\\"b\\\\c";'
TLS = {"security.protocol": "SASL_SSL", "ssl.ca.location": "/ca.pem"}


@pytest.mark.parametrize(
    ("given", "translated"),
    [
        ({"client.id": "x", "socket.timeout.ms": 500}, {}),
        ({"security.protocol": "ssl"}, {"security.protocol": "SSL"}),
        (
            {"ssl.ca.location": "/ca.pem"},
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
        ),
        (
            {"ssl.ca.pem": "-----BEGIN"},
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "-----BEGIN"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": "none"},
            {"ssl.endpoint.identification.algorithm": ""},
        ),
        (
            {"ssl.endpoint.identification.algorithm": "https"},
            {"ssl.endpoint.identification.algorithm": "https"},
        ),
        (
            {"sasl.mechanisms": "PLAIN", **LOGIN},
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN} required {QUOTED}"},
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-256", **LOGIN},
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f"{SCRAM} required {QUOTED}"},
        ),
        (
            {"sasl.mechanisms": "SCRAM-SHA-512", **LOGIN},
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f"{SCRAM} required {QUOTED}"},
        ),
    ],
)
def test_security_is_translated(given: Properties, translated: dict[str, str]) -> None:
    assert untranslated(given) == []
    assert java_security(given) == translated


def test_other_security_properties_are_found() -> None:
    given = {"ssl.key.location": "/k", "sasl.mechanisms": "GSSAPI", "client.id": "x", **TLS}
    assert untranslated(given) == ["sasl.mechanisms", "ssl.key.location"]


def test_security_that_cannot_be_translated_is_refused_by_name() -> None:
    unverified: Properties = {
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": False,
    }
    with pytest.raises(ValidationError) as found:
        Settings(kafka_properties=unverified)
    assert describe(found.value) == [
        (
            "COINCIDE_SPARK_KAFKA_PROPERTIES: security.protocol: is missing; "
            "enable.ssl.certificate.verification of COINCIDE_KAFKA_PROPERTIES cannot be "
            "translated for "
            "the Java client: set all its security properties here"
        )
    ]
    own = {"security.protocol": "SSL", "ssl.truststore.location": "/own"}
    replaced = Settings(kafka_properties=unverified, spark_kafka_properties=own)
    assert replaced.source_properties == own


def test_properties_of_the_source_are_added_to_the_translated_ones() -> None:
    settings = Settings(
        kafka_properties={"security.protocol": "SSL", "client.id": "x"},
        spark_kafka_properties={"max.poll.records": "5"},
    )
    assert settings.source_properties == {"security.protocol": "SSL", "max.poll.records": "5"}
