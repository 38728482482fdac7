"""Lists of top-k conditions, as their topics contain them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.kafka import Received

# Lists by Kafka key: id of the older set, id of the newer set, overlap.
Named = tuple[str, str, int]
Lists = dict[str, list[Named]]


def newest_lists(records: Iterable[Received]) -> Lists:
    """Return the lists of a compacted topic."""
    newest = {(it.key or b"").decode(): it.value for it in records}
    return {
        key: [listed(one) for one in json.loads(value)["items"]]
        for key, value in newest.items()
        if value is not None
    }


def listed(item: Mapping[str, Any]) -> Named:
    """Return the pair of an item of a list, or of a change."""
    return item["older"]["id"], item["newer"]["id"], item["overlap"]


def fold_ranks(records: Iterable[Mapping[str, Any]]) -> dict[str, dict[Named, int]]:
    """Return the rank of each pair of each list; fail if a change contradicts an earlier one."""
    ranks: dict[str, dict[Named, int]] = defaultdict(dict)
    for it in records:
        name = "/".join([it["condition"], *([it["key"]] if "key" in it else [])])
        found, pair = ranks[name], listed(it)
        assert (pair in found) == (it["change"] != "entered"), it
        if it["change"] == "left":
            del found[pair]
        else:
            found[pair] = it["rank"]
    return ranks


def folded(records: Iterable[Mapping[str, Any]]) -> Lists:
    """Return the lists that follow from changes."""
    ranks = fold_ranks(records)
    return {name: sorted(found, key=found.__getitem__) for name, found in ranks.items() if found}


def read_json(record: Received) -> dict[str, Any]:
    """Return the value of a record."""
    found: dict[str, Any] = json.loads(record.value or b"")
    return found
