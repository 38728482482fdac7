"""Sphinx extension: the generated pages, and the languages of the code blocks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pygments.lexers.special import TextLexer

from deploy.site.rest import DOCUMENTS_PAGE, describe_documents, describe_operations
from service.app import create_app
from service.settings import Settings

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

# Marks of code blocks by which tests find them; they are not highlighted.
_PLAIN_MARKS = ("plan", "query", "summary")
_GENERATED = {"rest": describe_operations, DOCUMENTS_PAGE: describe_documents}


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    for mark in _PLAIN_MARKS:
        app.add_lexer(mark, TextLexer)
    app.connect("source-read", append_generated)
    return {"parallel_read_safe": True}


def append_generated(_: Sphinx, page: str, source: list[str]) -> None:
    """Append its generated part to the text of a page.

    Parameters
    ----------
    page : str
        Name of the page, without extension.
    source : list of str
        The text of the page; changed in place.
    """
    if page in _GENERATED:
        source[0] += "\n" + _GENERATED[page](_schema())


@cache
def _schema() -> dict[str, Any]:
    return create_app(Settings()).openapi()
