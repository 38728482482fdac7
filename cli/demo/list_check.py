"""Check of the demo's top-k list: present lists and changes against the judge's lists.

The condition reports the net changes of each batch, no message is late, and no watermark is reset.
The changes of a batch therefore have the same time, which is the `as_of` of the one list that the
batch writes, and a later batch has a later time. A batch that changes the list writes both; without
them, the next changes contradict the list so far, or the last list is wrong. The check cannot
distinguish a batch from two of which the first wrote nothing: the division into batches is free.
"""

from __future__ import annotations

from itertools import groupby, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cli.demo.list_judge import Listed, listed_of
from cli.errors import VerificationError
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        after = dict(ranks)
        changed: set[Listed] = set()
        for change in group:
            pair = listed_of(change)
            problem = _contradiction(change, ranks.get(pair), is_repeated=pair in changed)
            if problem:
                raise VerificationError(f"a pair {change['change']}, but it {problem}: {pair}")
            changed.add(pair)
            after[pair] = change["rank"]
            if change["change"] == "left":
                del after[pair]
        ranks = after
        by_rank = {rank: pair for pair, rank in ranks.items()}
        yield time_us, [by_rank.get(rank) for rank in range(1, len(ranks) + 1)]


def _contradiction(change: Mapping[str, Any], rank: int | None, *, is_repeated: bool) -> str | None:
    """Return how a change contradicts the list before its time, in which the pair has `rank`."""
    if is_repeated:
        return f"changes twice as of {describe_moment(change['time'])}"
    if change["change"] == "entered":
        return None if rank is None else "is already in the list"
    if rank is None:
        return "is not in the list"
    if change["change"] == "left" and change["rank"] != rank:
        return f"has the rank {rank}, not {change['rank']}"
    if change["change"] == "moved" and change["rank"] == rank:
        return f"has the rank {rank} already"
    return None


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
        A list differs, is missing or is repeated, or a change contradicts the earlier ones.
    """
    written = list(lists)
    for it in written:
        if it["items"] is not None:
            _verify_ranks(it)
            _verify(judge, "the present list", it["as_of"], _pairs_of(it))
    followed = []
    for time_us, pairs in follow_changes(changes):
        _verify(judge, "the list that follows from the changes", time_us, pairs)
        followed.append((time_us, pairs))
    last = followed[-1][1] if followed else []
    _verify(judge, "the last present list", end_us, _pairs_of(written[-1]) if written else [])
    _verify(judge, "the list that follows from all changes", end_us, last)
    _verify_number(written, followed)
    present = sum(it["items"] is not None for it in written)
    return present + len(followed) + 2


def _pairs_of(written: Mapping[str, Any]) -> list[Listed]:
    return [listed_of(item) for item in written["items"] or ()]


def _verify(judge: ListJudge, what: str, as_of_us: int, pairs: Sequence[Listed | None]) -> None:
    """Compare a list with the judge's list of its time."""
    expected = judge.list_at(as_of_us)
    if pairs != expected:
        raise VerificationError(
            f"{what} as of {describe_moment(as_of_us)} differs from that of all pairs: "
            f"{pairs}, not {expected}"
        )


def _verify_ranks(written: Mapping[str, Any]) -> None:
    """Check that the ranks of a list are 1 to the number of its items."""
    ranks = [item["rank"] for item in written["items"]]
    if ranks != [*range(1, len(ranks) + 1)]:
        moment = describe_moment(written["as_of"])
        raise VerificationError(f"the present list as of {moment} has the ranks {ranks}")


def _verify_number(
    written: Sequence[Mapping[str, Any]], followed: Sequence[tuple[int, list[Listed | None]]]
) -> None:
    """Check that each time of changes has one list, which is withdrawn if it has no pairs."""
    for it, there in zip_longest(written, followed):
        if it is None:
            raise VerificationError(f"no list was written as of {describe_moment(there[0])}")
        if there is None:
            raise VerificationError(f"a list was written without a change: {_describe(it)}")
        time_us, pairs = there
        # A withdrawn list has no time. It is in the place of the list without pairs.
        if it["items"] is None and not pairs:
            continue
        if it["items"] is None or not pairs or it["as_of"] != time_us:
            raise VerificationError(
                f"changes as of {describe_moment(time_us)} lead to {len(pairs)} pairs, "
                f"but {_describe(it)} was written"
            )


def _describe(written: Mapping[str, Any]) -> str:
    if written["items"] is None:
        return "a withdrawal"
    return f"a list as of {describe_moment(written['as_of'])}"
