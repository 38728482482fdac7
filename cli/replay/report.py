"""Report of a replay: as JSON for scripts, as tables for users."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from cli.client.lines import counted
from cli.replay.options import EventFile
from cli.replay.results import Labels, Totals
from cli.replay.thresholds import name_at
from correlation.kinds import KINDS, to_condition
from correlation.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from rich.console import Console

    from cli.replay.merging import Source
    from cli.replay.setup import Setup
    from correlation.condition_kind import ConditionKind
    from correlation.resources.streams import Stream

Document = dict[str, Any]
# Name of the number of results of kinds without a summary.
_RESULTS = "results"
# Further columns of the table, by the name of the number of results.
_COLUMNS = {
    it.replay_summary.results: it.replay_summary.columns
    for it in KINDS.values()
    if it.replay_summary is not None
} | {_RESULTS: {}}


def summarise(
    setup: Setup,
    sources: Sequence[Source],
    totals: Totals,
    thresholds: Sequence[Decimal],
    seconds: float,
) -> Document:
    """Build the report of a replay.

    Parameters
    ----------
    setup
        Streams and conditions, as they are in the files of resources.
    sources
        The files or partitions, read to their end.
    totals
        Counters of all slots.
    thresholds
        Thresholds at which results were counted; empty: those of the conditions.
    seconds
        Duration of the replay.
    """
    streams = {name: _stream_report(stream, sources) for name, stream in setup.streams.items()}
    events = sum(found["events"] for found in streams.values())
    report: Document = {
        "streams": streams,
        "conditions": {},
        "events": events,
        "rows": sum(found["rows"] for found in streams.values()),
        "seconds": round(seconds, 3),
        "events_per_second": round(events / max(seconds, 1e-9)),
    }
    for number, resource in enumerate(setup.conditions):
        read = [streams[name] for name in setup.streams_of(resource)]
        found: Document = {
            "events": sum(it["events"] for it in read),
            "late": sum(it["late"] for it in read),
            "rejected": sum(sum(it["rejected"].values()) for it in read),
        }
        kind = KINDS[resource.document["kind"]]
        if thresholds:
            found[f"{_results_of(kind)}_at"] = {
                format(threshold, "f"): _count(
                    totals, "alarms_total", condition=name_at(number, threshold)
                )
                for threshold in thresholds
            }
        else:
            found |= _results_report(totals, resource.name, kind)
        condition = to_condition(resource)
        warnings = list(kind.warn(condition, setup.streams))
        report["conditions"][resource.name] = found | ({"warnings": warnings} if warnings else {})
    return report


def _stream_report(stream: Stream, sources: Sequence[Source]) -> Document:
    mine = [source for source in sources if source.origin.stream == stream.name]
    files = [str(it.origin) for it in mine if isinstance(it.origin, EventFile)]
    counts = [source.counts for source in mine]
    rejected: Counter[str] = Counter()
    first: dict[str, str] = {}
    for it in counts:
        rejected.update(it.rejected)
        first = it.first | first
    report = {
        "rows": sum(it.rows for it in counts),
        "events": sum(it.events for it in counts),
        "late": sum(it.late for it in counts),
        "rejected": dict(sorted(rejected.items())),
        "first_rejected": dict(sorted(first.items())),
    }
    if stream.where is not None:
        report["filtered"] = sum(it.filtered for it in counts)
    if files:
        return {"files": files, **report}
    return {"topic": stream.topic, **report, "lost": sum(it.lost for it in counts)}


def _results_of(kind: ConditionKind) -> str:
    return _RESULTS if kind.replay_summary is None else kind.replay_summary.results


def _results_report(totals: Totals, name: str, kind: ConditionKind) -> Document:
    """Return the number of results, and the facts from the counters of the kind."""
    number = {_results_of(kind): _count(totals, "alarms_total", condition=name)}
    if kind.replay_summary is None:
        return {**number, "metrics": _metrics_report(totals, name, kind)}
    return number | kind.replay_summary.summarise(partial(_count, totals, condition=name))


def _metrics_report(totals: Totals, name: str, kind: ConditionKind) -> dict[str, int]:
    """Return the metrics of the kind: their totals, and their values by labels."""
    metrics = dict.fromkeys(kind.metrics, 0)
    for (metric, labels), count in sorted(totals.items()):
        if metric in kind.metrics and ("condition", name) in labels:
            metrics[metric] += count
            others = [f"{label}={value}" for label, value in labels if label != "condition"]
            if others:
                metrics[f"{metric}{{{','.join(others)}}}"] = count
    return metrics


def _count(totals: Totals, name: str, **labels: str) -> int:
    found: Labels = tuple(sorted(labels.items()))
    return totals[name, found]


def show_report(report: Document, console: Console) -> None:
    """Print a report as tables.

    Parameters
    ----------
    report
        Report as `summarise` returns it.
    console
        Console to print to.
    """
    _show_conditions(report["conditions"], console)
    rate = f"{report['events_per_second']:,} events/s"
    console.print(f"{counted(report['events'], 'event')} in {report['seconds']:.1f} s, {rate}")
    for name, found in report["streams"].items():
        for reason, count in found["rejected"].items():
            example = escape(printable(found["first_rejected"][reason]))
            console.print(f"[yellow]{name}: {count:,} rejected, {reason}[/]; first: {example}")
        if found.get("filtered"):
            console.print(
                f"{name}: {found['filtered']:,} filtered: they do not match where of the stream"
            )
        if found["late"]:
            place, remedy = "partition", "increase max_delay"
            if "files" in found:
                place, remedy = "file", "increase max_delay or use --sort"
            console.print(
                f"[yellow]{name}: {found['late']:,} late[/]: more than max_delay behind an earlier "
                f"event of the {place}; {remedy}"
            )
        if found.get("lost"):
            console.print(
                f"[red]{name}: {counted(found['lost'], 'record')} lost[/]: removed by the "
                f"retention of {escape(found['topic'])} before they were read"
            )


def _show_conditions(conditions: Mapping[str, Document], console: Console) -> None:
    """Print a table with the columns that the conditions need, and the metrics of their kinds."""
    rows = [_row_of(name, found) for name, found in conditions.items()]
    table = Table(box=None, pad_edge=False)
    further = dict.fromkeys(title for columns in _COLUMNS.values() for title in columns)
    for title in ("condition", "events", *_COLUMNS, *further, "late", "rejected"):
        if any(title in row for row in rows):
            table.add_column(title, justify="left" if title == "condition" else "right")
    for row in rows:
        table.add_row(*(row.get(str(column.header), "") for column in table.columns))
    console.print(table)
    for name, found in conditions.items():
        counts = [f"{it} {count:,}" for it, count in found.get("metrics", {}).items()]
        if counts:
            console.print(escape(f"{name}: {', '.join(counts)}"))
        for sentence in found.get("warnings", ()):
            console.print(f"[yellow]warning:[/] {escape(printable(f'{name}: {sentence}'))}")


def _row_of(name: str, found: Document) -> dict[str, str]:
    """Return the cells of a condition by the titles of their columns."""
    row = {"condition": name, "events": f"{found['events']:,}"}
    for results, columns in _COLUMNS.items():
        if results in found:
            row[results] = f"{found[results]:,}"
            row |= {title: show(found) for title, show in columns.items()}
        elif f"{results}_at" in found:
            row[results] = "see above"
            row |= dict.fromkeys(columns, "")
    return row | {title: f"{found[title]:,}" for title in ("late", "rejected")}


def show_rejected(report: Document, console: Console, *, letters: bool, strict: bool) -> None:
    """Print the number of rejected rows, if any, and options that handle them.

    Parameters
    ----------
    report
        Report as `summarise` returns it.
    console
        Console to print to.
    letters
        Whether the rejected rows were written to a file.
    strict
        Whether rejected rows already cause exit code 1.
    """
    rejected = sum(sum(found["rejected"].values()) for found in report["streams"].values())
    if not rejected:
        return
    what = "row" if any("files" in found for found in report["streams"].values()) else "record"
    remedies = [] if letters else ["--rejects FILE keeps them"]
    remedies += [] if strict else ["with --strict the exit code is 1"]
    parts = [f"{rejected:,} of {counted(report['rows'], what)} rejected", ", ".join(remedies)]
    console.print("; ".join(filter(None, parts)))


def show_thresholds(report: Document, console: Console) -> None:
    """Print the number of results of each condition at each threshold."""
    counts = {
        name: next(it for field, it in found.items() if field.endswith("_at"))
        for name, found in report["conditions"].items()
    }
    table = Table(box=None, pad_edge=False)
    table.add_column("threshold", justify="right")
    for name in counts:
        table.add_column(name, justify="right")
    for threshold in next(iter(counts.values())):
        table.add_row(threshold, *(f"{found[threshold]:,}" for found in counts.values()))
    console.print(table)
