"""Check of the demo's top-k list: present lists and changes against the judge's lists."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cli.demo.list_judge import Listed, listed_of
from cli.errors import VerificationError
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cli.demo.list_judge import ListJudge


def follow_changes(
    changes: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[int, list[Listed | None]]]:
    """Apply changes to an empty list; yield each time in µs, and the list after its changes.

    Parameters
    ----------
    changes
        Changes; those of a pair are in order.

    Yields
    ------
    tuple of int and list
        Time, and list. A pair of the list is None if no pair has its rank.

    Raises
    ------
    VerificationError
        A change contradicts the earlier ones.
    """
    ranks: dict[Listed, int] = {}
    for time_us, group in groupby(sorted(changes, key=itemgetter("time")), itemgetter("time")):
        for change in group:
            pair, entered = listed_of(change), change["change"] == "entered"
            if (pair in ranks) == entered:
                known = "is already in the list" if entered else "is not in the list"
                raise VerificationError(f"a pair {change['change']}, but it {known}: {pair}")
            ranks[pair] = change["rank"]
            if change["change"] == "left":
                del ranks[pair]
        by_rank = {rank: pair for pair, rank in ranks.items()}
        yield time_us, [by_rank.get(rank) for rank in range(1, len(ranks) + 1)]


def verify_lists(
    judge: ListJudge,
    lists: Iterable[Mapping[str, Any]],
    changes: Iterable[Mapping[str, Any]],
    end_us: int,
) -> int:
    """Compare lists and changes with the judge's lists.

    Parameters
    ----------
    judge
        Judge of the condition.
    lists
        All lists that were written, in order; `items` of a withdrawn list is None.
    changes
        All changes that were written; those of a pair are in order.
    end_us
        Time of the last event, in µs.

    Returns
    -------
    int
        Number of lists compared, with those that follow from the changes.

    Raises
    ------
    VerificationError
        A list differs, or a change contradicts the earlier ones.
    """
    found: list[tuple[str, int, list[Listed | None]]] = []
    written: list[Listed | None] = []
    for it in lists:
        written = [listed_of(item) for item in it["items"] or ()]
        if it["items"] is not None:
            found.append(("the present list", it["as_of"], written))
    followed: list[Listed | None] = []
    for time_us, followed in follow_changes(changes):
        found.append(("the list that follows from the changes", time_us, followed))
    found.append(("the last present list", end_us, written))
    found.append(("the list that follows from all changes", end_us, followed))
    for what, as_of_us, pairs in found:
        expected = judge.list_at(as_of_us)
        if pairs != expected:
            raise VerificationError(
                f"{what} as of {describe_moment(as_of_us)} differs from that of all pairs: "
                f"{pairs}, not {expected}"
            )
    return len(found)
