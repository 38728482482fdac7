"""Security properties of librdkafka in the names of Kafka's Java client.

Spark's source uses the Java client, all other clients use librdkafka. The two have the same
security, but other names for it. Properties that are not about security are not translated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PREFIXES = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.")
_MECHANISMS = ("sasl.mechanisms", "sasl.mechanism")
_LOGIN = ("sasl.username", "sasl.password")
_CHECKED_HOST = "ssl.endpoint.identification.algorithm"
_SINGLE: dict[str, Callable[[str], dict[str, str]]] = {
    "security.protocol": lambda value: {"security.protocol": value.upper()},
    "ssl.ca.location": lambda value: {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": value,
    },
    "ssl.ca.pem": lambda value: {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": value,
    },
    # The Java client does not check the host name if the value is empty.
    _CHECKED_HOST: lambda value: {_CHECKED_HOST: "" if value == "none" else value},
}


def untranslated(properties: Mapping[str, object]) -> list[str]:
    """Return the security properties that `java_security` cannot translate, sorted."""
    known = {*_SINGLE, *_MECHANISMS, *_LOGIN}
    found = {name for name in properties if name.startswith(_PREFIXES)} - known
    mechanism = _mechanism(properties)
    if mechanism is not None and mechanism not in _MODULES:
        found.update(name for name in _MECHANISMS if name in properties)
    return sorted(found)


def java_security(properties: Mapping[str, object]) -> dict[str, str]:
    """Return the security properties of the Java client.

    Parameters
    ----------
    properties : mapping
        librdkafka properties, without those that `untranslated` returns.
    """
    found: dict[str, str] = {}
    for name, translate in _SINGLE.items():
        if name in properties:
            found |= translate(str(properties[name]))
    mechanism = _mechanism(properties)
    if mechanism is not None:
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = _jaas(mechanism, properties)
    return found


def _mechanism(properties: Mapping[str, object]) -> str | None:
    return next((str(properties[name]) for name in _MECHANISMS if name in properties), None)


def _jaas(mechanism: str, properties: Mapping[str, object]) -> str:
    """Return the JAAS configuration of a user with a password."""
    user, password = (_quoted(str(properties.get(name, ""))) for name in _LOGIN)
    return f"{_MODULES[mechanism]} required username={user} password={password};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
