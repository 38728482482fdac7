"""A Kafka broker with TLS, passwords and access control, and the rights of its users."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from cli.stack.broker import HOST, EmbeddedBroker, free_port
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

SCRAM_MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
# The fewest that Kafka accepts: the tests do not measure the strength of passwords.
_ITERATIONS = 4096


@dataclass(frozen=True, slots=True)
class User:
    """A user of the broker.

    Parameters
    ----------
    name
        Name of the user; its principal is ``User:`` and this name.
    password
        Password of the user.
    mechanism
        SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
    """

    name: str
    password: str
    mechanism: str


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource.

    Parameters
    ----------
    operation
        Operation in Kafka's spelling, such as ``DescribeConfigs``.
    resource
        Type of the resource: ``topic``, ``group`` or ``transactional-id``.
    name
        Name of the resource; with ``*`` at its end, a prefix of names.
    """

    operation: str
    resource: str
    name: str

    def binding(self, principal: str) -> AclBinding:
        """Return the ACL that grants the right to a principal."""
        return AclBinding(*self._pattern(), principal, "*", self._operation(), _ALLOW)

    def filter(self, principal: str) -> AclBindingFilter:
        """Return the filter that finds the ACL of a principal."""
        return AclBindingFilter(*self._pattern(), principal, "*", self._operation(), _ALLOW)

    def _pattern(self) -> tuple[ResourceType, str, ResourcePatternType]:
        literal = not self.name.endswith("*")
        kind = ResourcePatternType.LITERAL if literal else ResourcePatternType.PREFIXED
        return _RESOURCES[self.resource], self.name.removesuffix("*"), kind

    def _operation(self) -> AclOperation:
        return _OPERATIONS[self.operation]


_ALLOW = AclPermissionType.ALLOW
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}


class SecuredBroker:
    """An embedded broker with two listeners.

    The listener of `bootstrap` has no security, and its clients have all rights: the tests prepare
    and read topics through it. The listener of `secured` requires TLS and a password, and its users
    have the rights that were granted.

    Parameters
    ----------
    folder
        Folder of the broker's data and of the certificate of its authority.
    users
        Users of the secured listener.
    """

    def __init__(self, folder: Path, users: Iterable[User]) -> None:
        self._users = tuple(users)
        authority = trustme.CA()
        self.authority = folder / "authority.pem"
        authority.cert_pem.write_to_path(str(self.authority))
        self.secured = f"{HOST}:{free_port()}"
        port = free_port()
        properties = {
            **self._listeners(port),
            **_certificate(authority, folder),
            **self._passwords(),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        self._broker = EmbeddedBroker(folder / "broker", port, properties=properties)
        self.bootstrap = self._broker.bootstrap

    def __enter__(self) -> Self:
        self._broker.start()
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self._add_scram_users()
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()

    def properties(self, user: User) -> dict[str, str]:
        """Return the librdkafka properties of a user, without the password."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanisms": user.mechanism,
            "sasl.username": user.name,
        }

    def environment(self, user: User, password_file: Path) -> dict[str, str]:
        """Return the variables of a process that connects as a user; write its password file."""
        password_file.write_text(f"{user.password}\n")
        return {
            "COINCIDE_BOOTSTRAP": self.secured,
            "COINCIDE_KAFKA_PROPERTIES": json.dumps(self.properties(user)),
            "COINCIDE_KAFKA_PASSWORD_FILE": str(password_file),
        }

    def grant(self, user: User, rights: Collection[Right]) -> None:
        """Grant rights to a user, and wait until the broker applies them."""
        bindings = [it.binding(f"User:{user.name}") for it in rights]
        for created in self._admin.create_acls(bindings).values():
            created.result(PATIENCE_SECONDS)
        for right in rights:
            wait_until(partial(self._has, user, right))

    def revoke(self, user: User, right: Right) -> None:
        """Take a right from a user, and wait until the broker applies it."""
        wanted = right.filter(f"User:{user.name}")
        removed = self._admin.delete_acls([wanted])[wanted].result(PATIENCE_SECONDS)
        assert len(removed) == 1, f"{user.name} does not have {right}"
        wait_until(lambda: not self._has(user, right))

    def refused(self) -> list[str]:
        """Return the lines of the broker's log about operations that it has refused."""
        lines = self._broker.log_path.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if " is Denied operation" in line]

    def _has(self, user: User, right: Right) -> bool:
        """Return whether the broker, which learns of changes from its controller, has an ACL."""
        wanted = right.filter(f"User:{user.name}")
        return bool(self._admin.describe_acls(wanted).result(PATIENCE_SECONDS))

    @contextmanager
    def without(self, user: User, right: Right) -> Iterator[None]:
        """Take a right from a user, and grant it again at the end."""
        self.revoke(user, right)
        try:
            yield
        finally:
            self.grant(user, [right])

    def _listeners(self, port: int) -> dict[str, str]:
        controller = f"{HOST}:{free_port()}"
        mapped = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "SECURED": "SASL_SSL"}
        return {
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{controller},"
            f"SECURED://{self.secured}",
            "controller.quorum.voters": f"1@{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port},SECURED://{self.secured}",
            "listener.security.protocol.map": ",".join(f"{it}:{of}" for it, of in mapped.items()),
        }

    def _passwords(self) -> dict[str, str]:
        prefix = "listener.name.secured"
        plain = "".join(
            f' user_{it.name}="{it.password}"' for it in self._users if it.mechanism == "PLAIN"
        )
        module = "org.apache.kafka.common.security"
        scram = {
            f"{prefix}.{it.lower()}.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;"
            for it in SCRAM_MECHANISMS
        }
        return {
            f"{prefix}.sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
            f"{prefix}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required{plain};",
            **scram,
        }

    def _add_scram_users(self) -> None:
        added: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(
                it.name,
                ScramCredentialInfo(SCRAM_MECHANISMS[it.mechanism], _ITERATIONS),
                it.password.encode(),
            )
            for it in self._users
            if it.mechanism in SCRAM_MECHANISMS
        ]
        for altered in self._admin.alter_user_scram_credentials(added).values():
            altered.result(PATIENCE_SECONDS)


def _certificate(authority: trustme.CA, folder: Path) -> dict[str, str]:
    """Return the broker's properties of a certificate that an authority issues for it."""
    issued = authority.issue_cert(HOST)
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    # Java reads keys in this format only.
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keystore = folder / "broker.pem"
    chain = b"".join(it.bytes() for it in issued.cert_chain_pems)
    keystore.write_bytes(text + chain)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keystore)}
