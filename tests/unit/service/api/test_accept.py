"""The media type that an Accept header prefers (RFC 9110, section 12.5.1), as a table."""

from __future__ import annotations

import pytest

from service.api.common import prefers

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "preferred"),
    [
        ("image/svg+xml", True),
        ("IMAGE/SVG+XML", True),
        ("image/*", True),
        ("image/svg+xml, */*;q=0.5", True),
        ("application/json;q=0.5, image/svg+xml;q=0.6", True),
        ("application/json, image/svg+xml", False),
        ("application/json;q=0.7, image/svg+xml;q=0.6", False),
        ("image/svg+xml;q=0", False),
        ("image/svg+xml;q=much", False),
        ("*/*", False),
        (BROWSER, False),
        ("", False),
    ],
)
def test_picture_is_preferred(accept: str, preferred: bool) -> None:  # noqa: FBT001 - a table
    assert prefers("image/svg+xml", accept, "application/json") is preferred
