"""A top-k list over a grid with two groups, for the benchmark that kills the job.

The slots write their part of a batch in transactions of their own, and the driver writes the merged
list and its changes in one more. The expected changes are those of a grid with one group, in a
program without a job.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN, Tokens
from correlation.topk.results import CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from benchmarks.workload import Records

SETS = "sets"
RATE = 200
_SPACING_US = 1_000_000 // RATE
_TOKENS = 8
# Exponent of Zipf's distribution: pairs of sets are similar, but seldom equal.
_EXPONENT = 1.3
STREAM = Stream(
    SETS,
    f"events-{SETS}",
    0,
    0,
    partitioning=Partitioning("grid", 2),
    clock="replay",
    tokens=Tokens(("tokens",)),
)
_CONDITION = Resource(
    "condition",
    "alike",
    1,
    0,
    {
        "kind": "topk_similarity",
        "a": SETS,
        "k": 10,
        "window_us": 10_000_000,
        "similarity": "jaccard",
        "per_key": False,
        "report": "every",
        "search": "shortest",
    },
)
RESOURCES = (Resource("stream", SETS, 1, 0, stream_to_document(STREAM)), _CONDITION)
# A change: what changed, rank, older set, newer set, time, reason.
Change = tuple[str, int, str, str, int, str]
Listed = list[tuple[str, str]]


def make_sets(second: int, rng: np.random.Generator) -> Records:
    """Draw the sets of a second as Kafka records of one partition, in the order of their times."""
    records: Records = []
    for number in range(second * RATE, (second + 1) * RATE):
        tokens = {f"t{it}" for it in rng.zipf(_EXPONENT, _TOKENS).tolist()}
        value = {"id": str(number), "time": number * _SPACING_US, "tokens": sorted(tokens)}
        records.append((None, orjson.dumps(value), 0))
    return records


def read_change(value: Mapping[str, Any]) -> Change:
    """Return a change without its detection, and without the values that follow from its sets."""
    ids = value["older"]["id"], value["newer"]["id"]
    return value["change"], value["rank"], *ids, value["time"], value["reason"]


def expected_changes(sent: Records) -> list[Change]:
    """Return the changes of the list of all sets, in order."""
    values = [orjson.loads(value) for _, value, _ in sent]
    rows = [
        (b"", it["id"].encode(), it["time"], it["time"], 0, offset, 0)
        for offset, it in enumerate(values)
    ]
    tokens = [sorted(name.encode() for name in it["tokens"]) for it in values]
    events = replace(
        Events.from_rows(SETS, rows), columns={TOKENS_COLUMN: SetsColumn.from_list(tokens)}
    )
    program = Program({SETS: replace(STREAM, partitioning=Partitioning("grid", 1))}, {SETS: 1})
    control = Control(0, _CONDITION.key, _CONDITION.to_record())
    progress = Progress(SETS, 0, len(rows), values[-1]["time"])
    outcome = program.advance(Block([control], [events], [progress]), lambda: 0)
    return [
        read_change(orjson.loads(record.value or b""))
        for result in outcome.results
        if result.heading(0).channel == CHANGES.name
        for record in result.records(0)
    ]


def lists_at(changes: Iterable[Change], times: Sequence[int]) -> list[Listed]:
    """Return the lists at times in ascending order: the pairs by rank."""
    found, ranks, rest = [], dict[tuple[str, str], int](), list(changes)[::-1]
    for as_of_us in times:
        # Sets that expire at a time are valid until it has passed.
        while rest and (rest[-1][4] < as_of_us or rest[-1][4:] == (as_of_us, "set")):
            change, rank, older, newer, *_ = rest.pop()
            ranks[older, newer] = rank
            if change == "left":
                del ranks[older, newer]
        found.append(sorted(ranks, key=ranks.__getitem__))
    return found


def count_faults(
    sent: Records,
    changes: Iterable[Mapping[str, Any]],
    lists: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Compare what was written with what is expected.

    Parameters
    ----------
    sent : Records
        All sets that were sent.
    changes, lists : sequence of dict
        Values of the changes and of the lists, in the order in which they were written.

    Returns
    -------
    list of str
        Numbers of changes, of those missing, too many and written twice; of lists, of those wrong
        and written twice.
    """
    expected = expected_changes(sent)
    wanted, found = Counter(expected), Counter(map(read_change, changes))
    times = [it["as_of"] for it in lists]
    written = [[(item["older"]["id"], item["newer"]["id"]) for item in it["items"]] for it in lists]
    pairs = zip(written, lists_at(expected, times), strict=True)
    numbers = (
        wanted.total(),
        (wanted - found).total(),
        len(found.keys() - wanted.keys()),
        sum(count > wanted[it] for it, count in found.items() if it in wanted),
        len(lists),
        sum(one != other for one, other in pairs),
        len(times) - len(set(times)),
    )
    return [f"{it:,}" for it in numbers]
