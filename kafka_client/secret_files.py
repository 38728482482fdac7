"""Settings whose values are secrets, and files that contain them.

A setting X that is annotated with `MAYBE_SECRET` is read from the variable X, or from the file
whose path is in the variable X_FILE: variables of a process are visible to its user, and to the
tools that start it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from pydantic_settings import EnvSettingsSource

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

_SUFFIX = "_file"


class _SecretFile(NamedTuple):
    """A file with the value of a setting: its variable and path, and whether X is set too."""

    variable: str
    path: str
    is_second: bool


class SecretFilesSource(EnvSettingsSource):
    """Source of settings that reads the variables X_FILE of secret settings X."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the file of a field; None if the field is not a secret or has no file."""
        _, key, is_complex = super().get_field_value(field, field_name)
        if not may_be_secret(field):
            return None, key, is_complex
        name = f"{self.env_prefix}{field_name}".lower()
        path = self.env_vars.get(f"{name}{_SUFFIX}")
        if path is None:
            return None, key, is_complex
        variable = f"{name}{_SUFFIX}".upper()
        return _SecretFile(variable, path, name in self.env_vars), key, False


def may_be_secret(field: FieldInfo) -> bool:
    """Return whether the value of a setting may be, or contain, a secret."""
    return MAYBE_SECRET in field.metadata


def secret_variables(settings: type[BaseSettings]) -> frozenset[str]:
    """Return the names of the variables X_FILE of a settings class."""
    prefix = settings.model_config["env_prefix"]
    return frozenset(
        f"{prefix}{name}{_SUFFIX}".upper()
        for name, field in settings.model_fields.items()
        if may_be_secret(field)
    )


def _read_file(value: object) -> object:
    """Return the content of a secret's file, without the line break at its end.

    Messages contain the path, and nothing of the content.
    """
    if not isinstance(value, _SecretFile):
        return value
    if value.is_second:
        other = value.variable.removesuffix(_SUFFIX.upper())
        raise _wrong_file(f"{value.variable} is set too; remove {other} or {value.variable}")
    try:
        text = Path(value.path).read_text(encoding="utf-8")
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
    else:
        return text.removesuffix("\n").removesuffix("\r")
    raise _wrong_file(
        f"{value.path}, the file in {value.variable}, cannot be read: {problem}; correct the path, "
        "or let the user of this process read the file"
    )


def _wrong_file(message: str) -> PydanticCustomError:
    return PydanticCustomError("secret_file", "{message}", {"message": message})


# The last annotation of a setting: pydantic runs the last validator of this kind first.
MAYBE_SECRET = BeforeValidator(_read_file)
