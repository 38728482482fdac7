"""Settings that the service, the job and the command line share, and their error messages.

The types of settings are defined here, so that all processes report the same errors. Messages do
not contain values that could be secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from correlation.resources.checks import check_topic
from kafka_client.secret_files import MAYBE_SECRET, SecretFilesSource
from kafka_client.secrets import Secrets
from kafka_client.users import user_of

if TYPE_CHECKING:
    from pydantic import ValidationError, ValidationInfo
    from pydantic.fields import FieldInfo
    from pydantic_settings import PydanticBaseSettingsSource

    from correlation.resources.topics import Topics

Properties = dict[str, str | int | float | bool]
Umask = Annotated[str, Field(pattern="^0?[0-7]{3}$")]
# The files contain the original events.
DEFAULT_UMASK = "077"

_JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
# A host name, an IPv4 address, or an IPv6 address in brackets, followed by the port.
_BROKER = re.compile(r"(?:[^\s:/@\[\]]+|\[[0-9A-Fa-f:.]+(?:%\w+)?\]):([0-9]{1,5})")
_HIGHEST_PORT = 65535
# Maximum length of a prefix: with the longest name of a channel it fits Kafka's limit of 249.
_PREFIX_LENGTH = 200
# Prefix of librdkafka's messages about conflicting properties.
_CHECKING_CLIENT = "Failed to create admin client: "


def json_object(value: object, example: str) -> Mapping[str, Any]:
    """Parse a setting that is a JSON object.

    Parameters
    ----------
    value
        String of the setting; a mapping is returned unchanged.
    example
        A valid value for the error message.

    Raises
    ------
    PydanticCustomError
        The setting is not JSON, not an object, or contains a member twice.
    """
    if isinstance(value, Mapping):
        return value
    found = _parsed(value, "an object", example)
    if not isinstance(found, dict):
        raise wrong_setting(
            f"must be a JSON object; got {_JSON_TYPES[type(found)]}; "
            f"write an object such as {example}"
        )
    return found


def json_list(value: object, example: str) -> tuple[object, ...]:
    """Parse a setting that is a JSON list.

    Parameters
    ----------
    value
        String of the setting; a list or tuple is returned as a tuple.
    example
        A valid value for the error message.

    Raises
    ------
    PydanticCustomError
        The setting is not JSON, or not a list.
    """
    if isinstance(value, list | tuple):
        return tuple(value)
    found = _parsed(value, "a list", example)
    if not isinstance(found, list):
        raise wrong_setting(
            f"must be a JSON list; got {_JSON_TYPES[type(found)]}; write a list such as {example}"
        )
    return tuple(found)


def string_properties(value: object, example: str) -> dict[str, str]:
    """Parse a JSON object whose members are strings.

    Parameters
    ----------
    value, example
        See `json_object`.

    Raises
    ------
    PydanticCustomError
        The setting is not such an object; the message names the member.
    """
    found = json_object(value, example)
    for name, member in found.items():
        if not isinstance(member, str):
            raise wrong_setting(
                f"{name}: must be a string; got {_JSON_TYPES[type(member)]}; "
                "put the value in quotation marks"
            )
    return dict(found)


def _parsed(value: object, wanted: str, example: str) -> object:
    """Parse the JSON of a setting."""
    try:
        return json.loads(str(value), object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise wrong_setting(
            f"is not valid JSON ({error.msg}, at character {error.pos + 1}); "
            f"write {wanted} such as {example}"
        ) from None


def wrong_setting(message: str) -> PydanticCustomError:
    """Return the error that a validator of a setting raises."""
    # The message is a parameter, because braces in a template would be parsed as fields.
    return PydanticCustomError("setting", "{message}", {"message": message})


def describe(error: ValidationError, *settings: type[BaseSettings]) -> list[str]:
    """Return an error message for each setting that is not valid.

    Parameters
    ----------
    error
        Error of a settings class that is read from `COINCIDE_…` variables.
    *settings
        Settings classes, whose fields define the accepted ranges of numbers.
    """
    fields = {name: field for found in settings for name, field in found.model_fields.items()}
    sentences = []
    for found in error.errors(include_url=False, include_input=False):
        field, *inside = (str(part) for part in found["loc"])
        member = "".join(f"{part}: " for part in inside)
        message = found["msg"]
        if field in fields and not inside:
            message = _describe_range(fields[field]) or message
        sentences.append(f"COINCIDE_{field.upper()}: {member}{message}")
    # A value of a union type has one error per type.
    return list(dict.fromkeys(sentences))


def _bootstrap_servers(value: str) -> str:
    """Check the addresses of brokers and return them without spaces."""
    brokers = [broker.strip() for broker in value.split(",")]
    for broker in brokers:
        found = _BROKER.fullmatch(broker)
        if not found or not 1 <= int(found[1]) <= _HIGHEST_PORT:
            raise wrong_setting(
                f"'{broker}' is not the address of a broker; write host:port, with a port from 1 "
                f"to {_HIGHEST_PORT} and commas between brokers, such as localhost:9092"
            )
    return ",".join(brokers)


def _describe_range(field: FieldInfo) -> str | None:
    """Return the error message with the range of a number or boolean; None for other types."""
    if field.annotation is bool:
        return "must be true or false"
    if field.annotation not in {int, float}:
        return None
    limits = {
        name: getattr(found, name)
        for found in field.metadata
        for name in ("ge", "gt", "le")
        if getattr(found, name, None) is not None
    }
    said = []
    if "ge" in limits and "le" in limits:
        said.append(f"from {limits['ge']} to {limits['le']}")
    else:
        words = {"ge": "of at least", "gt": "greater than", "le": "of at most"}
        said += [f"{words[name]} {limit}" for name, limit in limits.items()]
    noun = "a whole number" if field.annotation is int else "a number"
    return " ".join(["must be", noun, " and ".join(said)]).strip()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; raise an error if a name occurs twice."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise wrong_setting(f"{name}: is repeated; remove one of them")
        members[name] = value
    return members


def _password(value: SecretStr | None) -> SecretStr | None:
    """Check the password of the Kafka user."""
    text = "" if value is None else value.get_secret_value()
    if value is not None and (not text or not text.isprintable()):
        raise wrong_setting("must be one line of printable characters; correct the password")
    return value


def _kafka_properties(value: object, info: ValidationInfo) -> Properties:
    """Parse the properties of librdkafka clients, add the password, and check them."""
    found = dict(_parsed_properties(value))
    if "kafka_password" not in info.data:
        # The password is not valid, which has an error of its own.
        return found
    password: SecretStr | None = info.data["kafka_password"]
    if password is not None:
        if "sasl.username" not in found:
            raise wrong_setting(
                "sasl.username: is missing, but COINCIDE_KAFKA_PASSWORD is set; add it, or remove "
                "the password"
            )
        if "sasl.password" in found:
            raise wrong_setting(
                "sasl.password: COINCIDE_KAFKA_PASSWORD is set too; remove one of them"
            )
        found["sasl.password"] = password.get_secret_value()
    if found:
        _check_kafka_properties(found)
    return found


def _parsed_properties(value: object) -> Mapping[str, Any]:
    found = json_object(value, '{"security.protocol": "SSL"}')
    for name, member in found.items():
        if not isinstance(member, str | int | float):
            raise wrong_setting(
                f"{name}: must be a string, a number, true or false; "
                f"got {_JSON_TYPES[type(member)]}"
            )
    return found


def _check_kafka_properties(properties: Mapping[str, Any]) -> None:
    """Raise PydanticCustomError if librdkafka rejects the properties."""
    problem = _refusal(properties)
    if problem is None:
        return
    # Some messages do not name the property: find the one that alone causes the same message.
    alone = [name for name in properties if _refusal({name: properties[name]}) == problem]
    culprit = f"{alone[0]}: " if alone else ""
    raise wrong_setting(
        f"{culprit}{problem}; correct or remove it; use the names of "
        "librdkafka, which differ from those of the Java client"
    )


def _refusal(properties: Mapping[str, Any]) -> str | None:
    """Return librdkafka's error message about the properties; None if it accepts them."""
    # Imported only if properties are set: the import takes longer than all the rest of `--help`.
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    # Without an address the client does not connect.
    checked = {name: value for name, value in properties.items() if name != "bootstrap.servers"}
    try:
        AdminClient({"log_level": 0, **checked})
    except KafkaException as error:
        return str(error.args[0].str()).removeprefix(_CHECKING_CLIENT).strip().rstrip(".")
    except (TypeError, ValueError, AttributeError) as error:
        # Properties whose values must be Python functions or objects, which JSON cannot contain.
        return str(error)
    return None


BootstrapServers = Annotated[str, AfterValidator(_bootstrap_servers)]
KafkaProperties = Annotated[Properties, NoDecode, BeforeValidator(_kafka_properties), MAYBE_SECRET]


class ClientSettings(BaseSettings):
    """Settings of every process, read from variables `COINCIDE_` + name in upper case."""

    model_config = SettingsConfigDict(env_prefix="COINCIDE_", frozen=True, extra="ignore")

    bootstrap: BootstrapServers = Field(
        default="127.0.0.1:9092",
        description="Addresses of the Kafka brokers, host:port, separated by commas.",
    )
    prefix: Annotated[
        str, Field(max_length=_PREFIX_LENGTH), AfterValidator(partial(check_topic, of="prefix"))
    ] = Field(
        default="coincide",
        description="Prefix of the names of Coincide's own topics, followed by a dot.",
    )
    # Before `kafka_properties`, whose validator adds the password.
    kafka_password: Annotated[SecretStr | None, AfterValidator(_password), MAYBE_SECRET] = Field(
        default=None,
        description="Password of the sasl.username of KAFKA_PROPERTIES.",
    )
    kafka_properties: KafkaProperties = Field(
        default_factory=dict,
        # A password without properties is an error.
        validate_default=True,
        repr=False,
        description="Further librdkafka properties of every client, as a JSON object "
        "(security.protocol, sasl.username, ...).",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_empty_path(cls, value: object, info: ValidationInfo) -> object:
        """Refuse an empty path, which would name the folder in which the process was started."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        if value == "" and (annotation is Path or Path in get_args(annotation)):
            raise wrong_setting("must not be empty; write a path, or remove the setting")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read a setting from its option, its secret's file or its variable."""
        return init_settings, SecretFilesSource(settings_cls), env_settings

    @property
    def secrets(self) -> Secrets:
        """Values that the process must not write to logs, topics or responses."""
        return Secrets(self.kafka_properties)

    @property
    def topics(self) -> Topics:
        """Names of Coincide's own topics."""
        # Kinds of conditions load numba, which most commands do not need.
        from correlation.kinds import topics_of  # noqa: PLC0415 - see the line above

        return topics_of(self.prefix)

    @property
    def kafka_user(self) -> str | None:
        """User of the Kafka clients, for errors of missing rights; None if it is not named."""
        return user_of(self.kafka_properties)

    def client_properties(self, client_id: str) -> Properties:
        """Return the properties of a librdkafka client.

        Parameters
        ----------
        client_id : str
            Shown in the broker's logs.
        """
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": client_id,
            # Each process reports errors itself; librdkafka would repeat every failed connection.
            "log_level": 2,
            **self.kafka_properties,
        }
