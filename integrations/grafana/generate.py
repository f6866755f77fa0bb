"""Generate the Grafana dashboards beside this file: ``python -m integrations.grafana.generate``.

Grafana imports them as they are. The data source is a variable: the first one of the kind Prometheus.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

FOLDER = Path(__file__).parent
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
ONE = '{suite=~"$suite", series=~"$series"}'


@dataclass(frozen=True)
class Graph:
    """A panel; *queries* maps each legend to its query."""

    title: str
    unit: str
    queries: Mapping[str, str]
    kind: type[stat.Panel] | type[timeseries.Panel] = timeseries.Panel
    span: int = 12
    height: int = 8


def _number(title: str, query: str, unit: str = "short") -> Graph:
    return Graph(title, unit, {"": query}, stat.Panel, span=4, height=4)


GRID = (
    _number("Series", "gridcast_metrics_series"),
    _number("Newest result passed", "avg(gridcast_series_passed)", "percentunit"),
    _number("Series without a result", 'gridcast_series_by_state{state="none"}'),
    _number("Oldest newest result", "max(gridcast_series_result_age_seconds)", "s"),
    _number("Open alerts", "sum(gridcast_alerts_open)"),
    _number("Series left out", "gridcast_metrics_left_out_series"),
    Graph("Series by state", "short", {"{{state}}": "gridcast_series_by_state"}),
    Graph("Sites by state", "short", {"{{state}}": "count by (state) (gridcast_site_state)"}),
    Graph(
        "Share of passed series by suite", "percentunit", {"{{suite}}": "suite:gridcast_series_passed:ratio"}
    ),
    Graph(
        "Series that fail, by time since their last success",
        "s",
        {
            "{{series}}": "topk(10, series:gridcast_series_last_success_age:seconds"
            " * on (series, suite) (1 - gridcast_series_passed))"
        },
    ),
    Graph(
        "Success probability of the next run",
        "percentunit",
        {"{{suite}}": "suite:gridcast_series_success_probability:avg"},
    ),
    Graph(
        "Slowest relative to the forecast median",
        "percentunit",
        {"{{series}}": "topk(10, series:gridcast_series_duration:ratio_to_forecast)"},
    ),
    Graph(
        "Series by probe",
        "short",
        {"{{probe}}": "count by (probe) (gridcast_series_info)"},
    ),
)
SERIES = (
    Graph("State", "short", {"{{series}} {{state}}": f"gridcast_series_state{ONE}"}, span=12),
    Graph(
        "Age of the newest result and of the last success",
        "s",
        {
            "{{series}}: result": f"gridcast_series_result_age_seconds{ONE}",
            "{{series}}: success": f"series:gridcast_series_last_success_age:seconds{ONE}",
        },
    ),
    Graph(
        "Duration and forecast",
        "s",
        {
            "{{series}}": f'gridcast_series_duration_seconds{ONE[:-1]}, total="total"}}',
            "{{series}}: forecast {{quantile}}": f"gridcast_series_forecast_seconds{ONE}",
        },
    ),
    Graph(
        "Duration by total",
        "s",
        {"{{series}} {{total}}": f"gridcast_series_duration_seconds{ONE}"},
    ),
    Graph("Duration of stages", "s", {"{{series}} {{stage}}": f"gridcast_series_stage_seconds{ONE}"}),
    Graph(
        "Share of stages in the duration",
        "percentunit",
        {"{{series}} {{stage}}": f"series:gridcast_series_stage:share{ONE}"},
    ),
    Graph(
        "Success probability",
        "percentunit",
        {"{{series}}": f"gridcast_series_success_probability{ONE}"},
    ),
)
SERVICE = (
    _number("Database", "gridcast_depot_up"),
    _number("Broker", "gridcast_broker_up"),
    _number("Runs due", "sum(gridcast_runs_due)"),
    _number("Runs late", "sum(gridcast_runs_late)"),
    _number("Runs in flight", "sum(gridcast_runs_in_flight)"),
    _number("5xx", "gridcast:http_server_errors:ratio_rate5m", "percentunit"),
    Graph("Age of heartbeats", "s", {"{{component}}": "component:gridcast_heartbeat_age:seconds"}),
    Graph("Tasks in queues", "short", {"{{queue}}": "gridcast_queue_tasks"}),
    Graph("Requests by status", "reqps", {"{{status}}": "status:gridcast_http_requests:rate5m"}),
    Graph("Busiest routes", "reqps", {"{{route}}": "topk(10, route:gridcast_http_requests:rate5m)"}),
    Graph(
        "99 % quantile of the response time",
        "s",
        {"{{route}}": "topk(10, route:gridcast_http_request_duration_seconds:p99_5m)"},
    ),
    Graph("Reports by receipt", "reqps", {"{{receipt}}": "receipt:gridcast_ingest_reports:rate5m"}),
    Graph(
        "Group commits",
        "short",
        {
            "requests in a commit": "rate(gridcast_ingest_group_commit_requests_total[5m])"
            " / rate(gridcast_ingest_group_commits_total[5m])",
            "seconds a commit": "rate(gridcast_ingest_group_commit_seconds_total[5m])"
            " / rate(gridcast_ingest_group_commits_total[5m])",
        },
    ),
    Graph(
        "Space of the depot",
        "bytes",
        {
            "size": "gridcast_depot_size_bytes",
            "free": "gridcast_depot_free_bytes",
            "reserve": "gridcast_depot_reserve_bytes",
        },
    ),
    Graph("Spools of reporters", "short", {"{{reporter}}": "gridcast_reporter_spool_records"}),
    Graph(
        "Reporters: time since the last exchange, spool lag",
        "s",
        {
            "{{reporter}}: exchange": "time() - gridcast_reporter_last_exchange_timestamp_seconds",
            "{{reporter}}: lag": "gridcast_reporter_spool_lag_seconds",
        },
    ),
    Graph("Clock offset of reporters", "s", {"{{reporter}}": "gridcast_reporter_clock_offset_seconds"}),
    Graph("Dirty hours", "short", {"": "gridcast_rollups_dirty"}),
    Graph("Messages of alerts", "short", {"{{state}}": "gridcast_notifications"}),
    Graph("Messages of webhooks", "short", {"{{webhook}}: {{state}}": "gridcast_webhook_deliveries"}),
    Graph(
        "Runs that wait for webhooks and traces", "short", {"{{subscriber}}": "gridcast_ended_runs_waiting"}
    ),
)
DASHBOARDS: Mapping[str, tuple[str, Sequence[Graph]]] = {
    "grid": ("gridcast: grid", GRID),
    "series": ("gridcast: series", SERIES),
    "service": ("gridcast: service", SERVICE),
}


def generate(name: str) -> str:
    """Return the dashboard *name* as JSON."""
    title, graphs = DASHBOARDS[name]
    board = (
        build.Dashboard(title)
        .uid(f"gridcast-{name}")
        .tags(["gridcast"])
        .timezone("utc")
        .refresh("30s")
        .time("now-6h", "now")
        .readonly()
        .with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    if name == "series":
        board.with_variable(_choice("suite", "label_values(gridcast_series_info, suite)"))
        board.with_variable(_choice("series", 'label_values(gridcast_series_info{suite=~"$suite"}, series)'))
    for graph in graphs:
        board.with_panel(_panel(graph))
    return JSONEncoder(sort_keys=True, indent=1).encode(board.build()) + "\n"


def _choice(name: str, query: str) -> build.QueryVariable:
    variable = build.QueryVariable(name).label(name.capitalize()).query(query).datasource(SOURCE)
    return variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).include_all(True).multi(True)


def _panel(graph: Graph) -> stat.Panel | timeseries.Panel:
    panel = graph.kind().title(graph.title).datasource(SOURCE).unit(graph.unit)
    panel.span(graph.span).height(graph.height)
    if isinstance(panel, timeseries.Panel):
        panel.show_points(VisibilityMode.NEVER).legend(_legend()).tooltip(_tooltip())
    else:
        panel.color_mode(BigValueColorMode.NONE)
    for number, (legend, query) in enumerate(graph.queries.items()):
        target = prometheus.Dataquery().expr(query).ref_id(chr(ord("A") + number)).datasource(SOURCE)
        panel.with_target(target.legend_format(legend) if legend else target)
    return panel


def _legend() -> common.VizLegendOptions:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST)
    return legend.placement(LegendPlacement.BOTTOM).show_legend(True)


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)


def queries(name: str) -> list[str]:
    """Return every query of the dashboard *name*."""
    panels = json.loads(generate(name))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


if __name__ == "__main__":
    for board_name in DASHBOARDS:
        (FOLDER / f"{board_name}.json").write_text(generate(board_name), encoding="utf-8")
