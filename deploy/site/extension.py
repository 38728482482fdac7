"""Sphinx extension: the generated pages, and the languages of the code blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

from deploy.site.rest import DOCUMENTS_PAGE, describe_documents, describe_operations
from deploy.site.topics import TOPICS_PAGE, describe_topics
from service.app import create_app
from service.asyncapi import make_document
from service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

# Marks of code blocks by which tests find them; they are not highlighted.
_PLAIN_MARKS = ("plan", "query", "summary")


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
        source[0] += "\n" + _GENERATED[page]()


def _operations() -> str:
    return describe_operations(create_app(Settings()).openapi())


def _documents() -> str:
    return describe_documents(create_app(Settings()).openapi())


def _topics() -> str:
    return describe_topics(make_document(Settings()))


_GENERATED: Mapping[str, Callable[[], str]] = {
    "rest": _operations,
    DOCUMENTS_PAGE: _documents,
    TOPICS_PAGE: _topics,
}
