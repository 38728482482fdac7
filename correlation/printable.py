"""Escaped display of strings that others wrote: in logs, messages and terminals."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    r"""Return a string with unprintable characters escaped, such as newlines and ANSI codes.

    Parameters
    ----------
    text
        String to display.
    kept
        Characters that are not escaped.

    Examples
    --------
    >>> print(printable("a\n\x1b[2Jb"))
    a\n\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(
        found
        if found.isprintable() or found in kept
        else found.encode("unicode_escape").decode("ascii")
        for found in text
    )
