"""Top-k: how large the lists, their windows and their stocks are, and what a set costs."""

from __future__ import annotations

from deploy.dashboards.expressions import gauge, rate
from deploy.dashboards.panels import Board, Panel, Query, Row


def topk() -> Board:
    """Return the dashboard."""
    return Board(
        "topk",
        "Top-k",
        "How the lists of top-k conditions change, how much they store, and what a set costs.",
        (Row("Lists", _lists()), Row("Work", _work())),
    )


def _lists() -> tuple[Panel, ...]:
    return (
        Panel(
            "Changes",
            "Pairs per second that entered a list, left it or moved in it.",
            (Query(rate("topk_changes_total", "condition"), "{{condition}}"),),
            "cps",
        ),
        Panel(
            "Last value",
            "Similarity, or distance, of the last pair of a full list, which a new pair has to "
            "surpass; with a list for each key, the minimum over the full lists.",
            (Query(gauge("topk_last_value", "condition"), "{{condition}}"),),
        ),
        Panel(
            "Sets in the window",
            "Sets that can be part of a pair.",
            (Query(gauge("topk_valid_sets", "condition"), "{{condition}}"),),
        ),
        Panel(
            "Pairs in stock",
            "Pairs that are in a list, or may be later. The job keeps them in memory.",
            (Query(gauge("topk_stock_pairs", "condition"), "{{condition}}"),),
        ),
        Panel(
            "Lists",
            "Lists with sets in their window.",
            (Query(gauge("topk_lists", "condition"), "{{condition}}"),),
        ),
        Panel(
            "Lists built in bulk",
            "Lists per second that were built from the buffers. Many mean that sets come late: "
            "raise `max_delay` of the stream.",
            (Query(rate("topk_rebuilds_total", "condition"), "{{condition}}"),),
            "cps",
        ),
    )


def _work() -> tuple[Panel, ...]:
    sets = rate("topk_sets_total", "condition")
    met = rate("topk_precandidates_total", "condition")
    verified = rate("topk_verified_total", "condition")
    passed = rate("topk_candidates_total", "condition")
    return (
        Panel("Sets", "Sets per second that took effect.", (Query(sets, "{{condition}}"),), "cps"),
        Panel(
            "Sets met by a search",
            "Sets that the search of one set meets in the inverted lists, sets whose overlap it "
            "counts, and pairs that it passes to the stock.",
            (
                Query(f"{met} / {sets}", "{{condition}} met"),
                Query(f"{verified} / {sets}", "{{condition}} verified"),
                Query(f"{passed} / {sets}", "{{condition}} passed to the stock"),
            ),
        ),
    )
