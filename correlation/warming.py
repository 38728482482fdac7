"""Conditions and streams on which the job compiles its kernels before the first batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from correlation.resources.attributes import Attribute
from correlation.resources.histogram import Histogram
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.tokens import Tokens

# The algorithms of a warm-up: those that a kind uses by default, or all that a document may choose.
Algorithms = Literal["defaults", "all"]

_SECOND_US = 1_000_000
_HALF_US = _SECOND_US // 2
_TEMPLATE = Histogram.from_buckets([[-_SECOND_US, -_HALF_US, "0.2"], [-_HALF_US, 0, "0.8"]])
_ATTRIBUTES = (Attribute("area", ("area",)), Attribute("level", ("level",), "integer"))
_TOKENS = Tokens(("words",))


class WarmUp(NamedTuple):
    """The warm-up of a kind.

    Attributes
    ----------
    streams : mapping of str to Stream
        Streams by name. Their events have times of every length that the stream allows, of its
        templates or histograms if it has any, and values of its attributes and tokens.
    documents : iterable of mapping
        Documents of conditions on these streams.
    """

    streams: Mapping[str, Stream]
    documents: Iterable[Mapping[str, Any]]


def usual_streams(shapes: str) -> dict[str, Stream]:
    """Return the streams of the warm-up of the built-in kinds.

    Parameters
    ----------
    shapes : {"intervals", "templates", "histograms"}
        Form of the times of streams a and b. The times of c and d are exact, and their events have
        the attributes area (a string) and level (an integer), and tokens.
    """
    templates = (Template("t", _TEMPLATE),) if shapes == "templates" else ()
    histograms = shapes == "histograms"
    uncertain = [
        Stream(it, it, _SECOND_US, _SECOND_US, templates=templates, histograms=histograms)
        for it in ("a", "b")
    ]
    exact = [
        Stream(it, it, 0, _SECOND_US, attributes=_ATTRIBUTES, tokens=_TOKENS) for it in ("c", "d")
    ]
    return {stream.name: stream for stream in (*uncertain, *exact)}
