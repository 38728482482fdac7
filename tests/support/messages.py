"""Tests of messages: the fields, names and values that a message contains, not its sentences.

A word is found as a whole: "3" is not found in "13".
"""

from __future__ import annotations

import re


def naming(*parts: object) -> str:
    """Return a pattern for `match=` that finds messages with all parts, in any order."""
    return "(?s)" + "".join(rf"(?=.*{_whole(part)})" for part in parts)


def assert_names(message: object, *parts: object) -> None:
    """Fail unless the message contains all parts."""
    missing = [part for part in parts if re.search(_whole(part), str(message)) is None]
    assert not missing, f"{missing} missing in: {message}"


def _whole(part: object) -> str:
    return rf"(?<!\w){re.escape(str(part))}(?!\w)"
