"""Build Grafana's model of a dashboard with the Grafana Foundation SDK."""

from __future__ import annotations

import json
from itertools import count
from string import ascii_uppercase
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as dashboard_builders
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.dashboards.expressions import FILTERS, KEYS, define, metrics_of
from service.definitions import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deploy.dashboards.panels import Board, Panel

TAG = "coincide"
_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT, _NUMBER_HEIGHT = 8, 4
_FILL_OPACITY = 20
AnyPanel = timeseries.Panel | stat.Panel | heatmap.Panel
_BUILDERS: Mapping[str, Callable[[], AnyPanel]] = {
    "lines": timeseries.Panel,
    "areas": timeseries.Panel,
    "number": stat.Panel,
    "heat": heatmap.Panel,
}


def to_json(board: Board) -> str:
    """Return a dashboard as the text of its JSON file."""
    built = _build(board).build()
    return json.dumps(built, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _build(board: Board) -> dashboard_builders.Dashboard:
    built = (
        dashboard_builders.Dashboard(f"Coincide / {board.title}")
        .uid(f"{TAG}-{board.name}")
        .description(board.description)
        .tags([TAG])
        .refresh("10s")
        .time("now-1h", "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard_builders.DashboardLink("Coincide")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(as_dropdown=True)
            .include_vars(include_vars=True)
            .keep_time(keep_time=True)
        )
    )
    for variable in _variables(board):
        built.with_variable(variable)
    numbers = count(1)
    for row in board.rows:
        built.with_row(dashboard_builders.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            built.with_panel(_build_panel(panel).id(next(numbers)))
    return built


def _variables(
    board: Board,
) -> Iterator[
    dashboard_builders.DatasourceVariable
    | dashboard_builders.QueryVariable
    | dashboard_builders.TextBoxVariable
]:
    """Yield the data source, the instance, and the filters that the expressions use."""
    yield dashboard_builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    up = define("job_up", "gauge").exposed
    yield _label_values("instance", f"label_values({up}, instance)").label("Service")
    panels = [panel for row in board.rows for panel in row.panels]
    expressions = [query.expression for panel in panels for query in panel.queries]
    # Metrics with these labels appear with the first events: any of them counts.
    every = f'{{__name__=~"{PREFIX}.+",instance="$instance"}}'
    for name in FILTERS:
        if any(f"${name}" in expression for expression in expressions):
            filtered = _label_values(name, f"label_values({every}, {name})")
            yield (
                filtered.label(name.capitalize())
                .multi(multi=True)
                .include_all(include_all=True)
                .all_value(".*")
                .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
            )

    if any(f"${KEYS}" in expression for expression in expressions):
        keys = dashboard_builders.TextBoxVariable(KEYS).label("Keys").default_value("1")
        yield keys.description("Number of equally frequent join keys of the streams.")


def _label_values(name: str, query: str) -> dashboard_builders.QueryVariable:
    return (
        dashboard_builders.QueryVariable(name)
        .datasource(_SOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _build_panel(panel: Panel) -> AnyPanel:
    built = _BUILDERS[panel.kind]()
    (
        built.title(panel.title)
        .description(_describe(panel))
        .datasource(_SOURCE)
        .span(panel.width)
        .height(_NUMBER_HEIGHT if panel.kind == "number" else _HEIGHT)
        .unit(panel.unit)
    )
    for query in panel.queries:
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
        target.datasource(_SOURCE)
        # As Grafana names queries: A, B, ...
        target.ref_id(ascii_uppercase[panel.queries.index(query)])
        if panel.kind == "heat":
            target.format(PromQueryFormat.HEATMAP)
        built.with_target(target.instant() if panel.kind == "number" else target.range())
    if (steps := _thresholds(panel)) is not None:
        built.thresholds(steps)
    if isinstance(built, timeseries.Panel):
        _style_lines(built, stacked=panel.kind == "areas")
        if steps is not None:
            lines = common_builders.GraphThresholdsStyleConfig()
            built.thresholds_style(lines.mode(common.GraphThresholdsStyleMode.LINE))
    elif isinstance(built, stat.Panel):
        built.graph_mode(common.BigValueGraphMode.NONE)
        built.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        built.y_axis(heatmap.YAxisConfig().unit(panel.unit))
    return built


def _style_lines(built: timeseries.Panel, *, stacked: bool) -> None:
    built.show_points(common.VisibilityMode.NEVER).legend(
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
        .calcs(["lastNotNull", "max"])
    ).tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    if stacked:
        built.fill_opacity(_FILL_OPACITY)
        built.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))


def _describe(panel: Panel) -> str:
    """Return the hint of a panel and the descriptions of its metrics."""
    expressions = " ".join(query.expression for query in panel.queries)
    metrics = [f"- `{it.exposed}`: {it.description}" for it in metrics_of(expressions)]
    return "\n".join([panel.hint, "", *metrics]).strip()


def _thresholds(panel: Panel) -> dashboard_builders.ThresholdsConfig | None:
    if panel.bad_from is None and panel.bad_below is None:
        return None
    if panel.bad_from is not None:
        steps = [models.Threshold(None, "green"), models.Threshold(panel.bad_from, "red")]
    else:
        steps = [models.Threshold(None, "red"), models.Threshold(panel.bad_below, "green")]
    return dashboard_builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)
