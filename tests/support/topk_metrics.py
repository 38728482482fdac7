"""Comparison of the metrics of top-k conditions with the records that the job has written."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import httpx

_METRICS = "coincide_alarms_total", "coincide_topk_changes_total", "coincide_topk_last_value"


def wait_for_topk_metrics(
    client: httpx.Client,
    lengths: Mapping[str, int],
    changes: Iterable[Mapping[str, Any]],
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    """Wait until counters are the numbers of changes, and last values those of full lists.

    Parameters
    ----------
    client
        Client of the service.
    lengths
        Length of a full list of each condition.
    changes
        All changes that were written.
    lists
        Items of the present lists, by CONDITION or CONDITION/KEY.
    """
    written = Counter(it["condition"] for it in changes)
    assert written.keys() == lengths.keys()
    values = defaultdict[str, list[float]](list)
    for key, items in lists.items():
        name = key.partition("/")[0]
        if len(items) == lengths[name]:
            values[name].append(items[-1].get("similarity", items[-1].get("distance")))
    assert values
    counts = {name: float(it) for name, it in written.items()}
    # A condition without a full list has no value.
    facts = counts, counts, {name: float(min(it)) for name, it in values.items()}
    wanted = {
        f'{metric}{{condition="{name}"}} {value}'
        for metric, found in zip(_METRICS, facts, strict=True)
        for name, value in found.items()
    }

    def present() -> set[str]:
        lines = client.get("/metrics").text.splitlines()
        return {it for it in lines if it.startswith(_METRICS)}

    wait_until(lambda: present() == wanted)
    for name, count in written.items():
        status = client.get(f"/v1/conditions/{name}/status").json()
        assert status["alarms"] == count
        assert status["last_alarm_at"] is not None
