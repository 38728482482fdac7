"""Token sets as records of a topic, with the stream and the condition that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from benchmarks.swoop.workload import draw_sets
from cli.demo.messages import load_messages
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from benchmarks.workload import Records

# Records take turns, so that the times of each partition increase.
PARTITIONS = 2
# Stream time from a recorded set to the next one.
SPACING_US = 1_000


class Source(NamedTuple):
    """Sets in their order.

    Attributes
    ----------
    name : str
        Name in tables.
    contents : sequence of dict
        Fields of the records, beside id and time.
    tokens : Tokens
        Declaration of the tokens.
    """

    name: str
    contents: Sequence[Mapping[str, object]]
    tokens: Tokens

    def record(self, number: int, time_us: int) -> bytes:
        """Return the value of the record of a set, with the number as its id."""
        return orjson.dumps({"id": str(number), "time": time_us, **self.contents[number]})

    def records(self, begin: int, end: int) -> Records:
        """Return the records of the sets from one number to another, with recorded times."""
        return [
            (None, self.record(it, it * SPACING_US), it % PARTITIONS) for it in range(begin, end)
        ]


def generate_sets(count: int) -> Source:
    """Return sets drawn as in `workload`, as lists of tokens."""
    drawn = draw_sets(count)
    names = [f"t{it}" for it in drawn.tokens.tolist()]
    ends = drawn.offsets.tolist()
    contents = [{"tokens": names[ends[it] : ends[it + 1]]} for it in range(count)]
    return Source("generated", contents, Tokens(("tokens",)))


def read_texts(count: int) -> Source:
    """Return the first messages of the demo, whose words are the tokens."""
    contents = [{"text": it.text} for it in load_messages(count)]
    return Source("messages", contents, Tokens(("text",), "words", lower_case=True))


def make_stream(
    name: str, source: Source, groups: int, clock: Literal["live", "replay"] = "replay"
) -> Stream:
    """Return a stream of the sets, in a grid; its topic has its name."""
    return Stream(
        name,
        f"events-{name}",
        0,
        0,
        partitioning=Partitioning("grid", groups),
        clock=clock,
        tokens=source.tokens,
    )


def changes_topic(stream: Stream) -> str:
    """Return the topic of the changes of the condition of a stream."""
    return f"changes-{stream.name}"


def make_resources(stream: Stream, k: int, window_us: int) -> tuple[Resource, Resource]:
    """Return a stream and a condition with the name of the stream, as registered.

    Parameters
    ----------
    stream : Stream
        The stream.
    k : int
        Length of the list.
    window_us : int
        Age up to which a set is valid, in µs.
    """
    document = {
        "kind": "topk_similarity",
        "a": stream.name,
        "k": k,
        "window_us": window_us,
        "similarity": "jaccard",
        "per_key": False,
        "report": "batch",
        "search": "shortest",
        "output_topic": changes_topic(stream),
    }
    return (
        Resource("stream", stream.name, 1, 0, stream_to_document(stream)),
        Resource("condition", stream.name, 1, 0, document),
    )


def window_us_of(window: int, spacing_us: int = SPACING_US) -> int:
    """Return the duration in which a number of recorded sets is valid."""
    return window * spacing_us - 1
