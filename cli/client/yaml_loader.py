"""YAML loader with the values of JSON; numbers are exact decimals, not floats.

YAML 1.1, which the parser implements, and YAML 1.2 disagree about some plain scalars: `010`,
`1_000`, `1:30`, `on`, `no`. Such a scalar is rejected with its line and column. `1e3`, a string in
YAML 1.1 but a number in YAML 1.2 and JSON, is read as a number.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# Numbers in YAML 1.2 that are strings in YAML 1.1: 1e3, 08, 0o17.
_NUMBER_SINCE = re.compile(
    r"^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|0o[0-7]+)$",
)
_TRUTHS = {"true": True, "false": False}
_FALSE = frozenset({"no", "off", "n"})
# Longer integers fit no field, and Python does not convert very long ones.
_LONGEST_WHOLE = 40
_QUOTES = "or put it in quotes if it is a string"
# Scalars that only YAML 1.1 reads as numbers, with problem and remedy.
_ODDITIES = (
    (re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE), "is not a valid JSON number", "write digits"),
    (re.compile(r".*:.*"), "is a base-60 number in YAML", "write a decimal number"),
    (re.compile(r"[-+]?0[xX].*"), "is a hexadecimal number", "write a decimal number"),
    (re.compile(r"[-+]?0[bB].*"), "is a binary number", "write a decimal number"),
    (re.compile(r"[-+]?0.*"), "is an octal number for some YAML parsers", "remove the leading 0"),
)


class Loader(yaml.SafeLoader):
    """A loader that rejects ambiguous scalars and repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - yaml's own signature
        """Return the mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value} is repeated",
                        problem_mark=key.start_mark,
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _number(_: Loader, node: yaml.ScalarNode) -> int | Decimal:
    """Return a number with exactly the digits written."""
    text = str(node.value)
    if _WHOLE.fullmatch(text) and len(text) <= _LONGEST_WHOLE:
        return int(text)
    if _FRACTION.fullmatch(text):
        try:
            return Decimal(text)
        except InvalidOperation:
            raise _refusal(node, "is out of range", "write a smaller exponent") from None
    digits = text.replace("_", "")
    if digits != text and _FRACTION.fullmatch(digits):
        raise _refusal(node, "has an underscore", f"write {digits[:_LONGEST_WHOLE]}, {_QUOTES}")
    for pattern, problem, remedy in _ODDITIES:
        if pattern.fullmatch(text):
            raise _refusal(node, problem, f"{remedy}, {_QUOTES}")
    raise _refusal(node, "is not a valid number", f"write a decimal number, {_QUOTES}")


def _truth(_: Loader, node: yaml.ScalarNode) -> bool:
    """Return the value of a boolean scalar."""
    found = _TRUTHS.get(str(node.value).lower())
    if found is None:
        text = str(node.value)[:_LONGEST_WHOLE]
        truth = "false" if text.lower() in _FALSE else "true"
        remedy = f'write {truth}, "{text}" in quotes, or a number'
        raise _refusal(node, "is a boolean for some YAML parsers and a string for others", remedy)
    return found


def _refusal(node: yaml.ScalarNode, problem: str, remedy: str) -> yaml.MarkedYAMLError:
    problem = f"{str(node.value)[:_LONGEST_WHOLE]} {problem}"
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark, note=remedy)


Loader.add_implicit_resolver(f"{_TAG}float", _NUMBER_SINCE, list("-+.0123456789"))
Loader.add_constructor(f"{_TAG}int", _number)
Loader.add_constructor(f"{_TAG}float", _number)
Loader.add_constructor(f"{_TAG}bool", _truth)
