"""Writer of documents as YAML, which parsers of YAML 1.1 and 1.2 read alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

# Strings that YAML 1.2 reads as numbers, and YAML 1.1 as strings, are written in quotes.
_NUMBER_SINCE = re.compile(r"^[-+]?(\.?[0-9].*|\.(inf|nan))$", re.IGNORECASE)
_WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """A dumper that writes no anchors and indents the items of lists."""

    def ignore_aliases(self, _: Any) -> bool:  # noqa: ANN401  yaml's own signature
        """Return True: equal values are written again."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  yaml's own signature
        """Indent the items of a list."""
        super().increase_indent(flow, indentless=False)


def _write_string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and text.isascii() and text.replace("\n", "").isprintable():
        style = "|"
    elif not text.isprintable():
        # Escaped: parsers read other line breaks, such as U+0085, as a line feed.
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_string)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER_SINCE, list("-+.0123456789"))


def write_yaml(documents: Iterable[dict[str, Any]]) -> str:
    """Write documents as YAML, each after a line `---`.

    Parameters
    ----------
    documents : iterable of dict
        Dictionaries with string keys, of JSON values.
    """
    return yaml.dump_all(
        documents,
        Dumper=_Dumper,
        explicit_start=True,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
    )
