"""Replacement of secrets and control characters in the output of the process."""

from __future__ import annotations

import logging
import re
from textwrap import indent
from typing import TYPE_CHECKING

from correlation.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    _ErrorInfo = (
        tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    )

HIDDEN = "[hidden]"
_INDENT = "    "
# Names of properties, and of options of a JAAS configuration, whose values are secrets. Spark uses
# the same pattern to redact its own output, so it must be valid in Java too.
SENSITIVE_NAMES = (
    "(?i)secret|passw|token|credential|jaas|access[.]?key|account[.]?key|encryption[.]key"
    "|key[.]pem|keystore[.]key|oauthbearer[.]config|user[.]info"
)
_SECRET_NAME = re.compile(SENSITIVE_NAMES)
_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;,"']+))""")
# Shorter values, "true" and "false" are frequent: replacing them would make output unreadable.
_SHORTEST = 4
_PLAIN = frozenset({"true", "false"})


class Secrets:
    """The secret values among properties.

    Parameters
    ----------
    *properties
        Properties of Kafka clients or of Spark.
    """

    def __init__(self, *properties: Mapping[str, object]) -> None:
        found = {
            secret
            for one in properties
            for name, value in one.items()
            if _SECRET_NAME.search(name)
            for secret in _secrets_of(str(value))
            if len(secret) >= _SHORTEST and secret not in _PLAIN
        }
        # Longest first: a secret may be part of another secret.
        alternatives = "|".join(re.escape(one) for one in sorted(found, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if found else None

    def hide(self, text: str) -> str:
        """Return the string with every secret replaced."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


class HidingFormatter(logging.Formatter):
    """Log formatter that replaces secrets in log records and tracebacks.

    A message is one line: names and keys that others wrote cannot forge further lines or change the
    terminal. Lines of a traceback are indented, because its error may contain such names too.

    Parameters
    ----------
    format_string
        Format of `logging.Formatter`.
    secrets
        Secrets to replace.
    """

    def __init__(self, format_string: str, secrets: Secrets) -> None:
        super().__init__(format_string)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return the line or lines of a log record."""
        return self._secrets.hide(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of logging
        """Return the line of a log record, without its traceback."""
        return printable(self._secrets.hide(super().formatMessage(record)))

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802 - the name of logging
        """Return the lines of a traceback."""
        shown = self._secrets.hide(super().formatException(ei))
        return indent(printable(shown, kept="\n"), _INDENT)


def _secrets_of(value: str) -> Iterator[str]:
    """Yield a secret value and, if it is a JAAS configuration, the secret options inside it."""
    yield value
    for name, *quoted in _OPTION.findall(value):
        if _SECRET_NAME.search(name):
            for part in filter(None, quoted):
                yield part
                yield part.replace('\\"', '"')
