"""Every metric that gridcast exports: its name, kind, labels and meaning; see ``docs/monitoring.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from monitor.analysis.traces import export as traces
from monitor.runs.ingest import counts


class Group(StrEnum):
    """What a scrape can ask for by ``collect[]``; by default it gets every group."""

    SERVICE = "service"
    REQUESTS = "requests"
    REPORTERS = "reporters"
    SITES = "sites"
    SERIES = "series"
    STAGES = "stages"
    FORECASTS = "forecasts"


@dataclass(frozen=True)
class MetricDefinition:
    """A metric; *name* is as in queries, except that a histogram has ``_bucket``, ``_sum`` and ``_count``.

    *kind*: gauge, counter, histogram or info.
    """

    group: Group
    kind: str
    name: str
    meaning: str
    labels: Sequence[str] = ()


def _gauge(group: Group, name: str, meaning: str, *labels: str) -> MetricDefinition:
    return MetricDefinition(group, "gauge", name, meaning, labels)


def _counter(group: Group, name: str, meaning: str, *labels: str) -> MetricDefinition:
    return MetricDefinition(group, "counter", name, meaning, labels)


_S, _Q, _R, _G = Group.SERVICE, Group.REQUESTS, Group.REPORTERS, Group.SERIES

BUILD = MetricDefinition(_S, "info", "gridcast_build_info", "Version of the service.", ("version",))
DEPOT_UP = _gauge(_S, "gridcast_depot_up", "1 if the database answers, else 0.")
BROKER_UP = _gauge(_S, "gridcast_broker_up", "1 if the broker answers, else 0.")
HEARTBEAT = _gauge(
    _S,
    "gridcast_heartbeat_timestamp_seconds",
    "Time of the last heartbeat: beat (with the control worker) and the home reporter's worker.",
    "component",
)
SERVICE_UP = _gauge(
    _S, "gridcast_supervised_service_up", "1 if the supervisor's service is up, else 0.", "service"
)
SERVICE_RESTARTS = _gauge(
    _S, "gridcast_supervised_service_restarts", "Restarts of the service in a row.", "service"
)
RUNS_DUE = _gauge(_S, "gridcast_runs_due", "Runs that may start and have not.", "reporter")
RUNS_LATE = _gauge(
    _S,
    "gridcast_runs_late",
    "Runs that may start and have waited for longer than the grace time.",
    "reporter",
)
RUNS_IN_FLIGHT = _gauge(_S, "gridcast_runs_in_flight", "Runs that are claimed or running.", "reporter")
QUEUE_TASKS = _gauge(_S, "gridcast_queue_tasks", "Tasks that wait in a queue of the broker.", "queue")
DEPOT_SIZE = _gauge(_S, "gridcast_depot_size_bytes", "Size of the database.")
DEPOT_FREE = _gauge(_S, "gridcast_depot_free_bytes", "Space that the database may still use.")
DEPOT_RESERVE = _gauge(
    _S, "gridcast_depot_reserve_bytes", "Reports are refused while less than this is free."
)
DIRTY_HOURS = _gauge(_S, "gridcast_rollups_dirty", "Hours whose rollups have to be computed.")
ALERTS_OPEN = _gauge(_S, "gridcast_alerts_open", "Open alerts.", "acknowledged")
NOTIFICATIONS = _gauge(
    _S, "gridcast_notifications", "Messages of alerts that are pending or were given up.", "state"
)

DELIVERIES = _gauge(
    _S, "gridcast_webhook_deliveries", "Messages of webhooks that are pending or dead.", "webhook", "state"
)
RUNS_FED = _gauge(
    _S,
    "gridcast_ended_runs_waiting",
    "Ended runs that wait to be told: to webhooks, as traces.",
    "subscriber",
)
TRACES_EXPORTED = _counter(_S, traces.EXPORTED, "Runs that the collector has accepted as traces.")
TRACES_DROPPED = _counter(_S, traces.DROPPED, "Runs that waited for the collector for too long.")
REQUESTS = _counter(
    _Q,
    "gridcast_http_requests_total",
    "Answered requests; status is 2xx, 3xx ...",
    "method",
    "route",
    "status",
)
REQUEST_SECONDS = MetricDefinition(
    _Q, "histogram", "gridcast_http_request_duration_seconds", "Time until the answer began.", ("route",)
)
RECEIPTS = _counter(
    _Q,
    counts.RECEIPTS,
    "Reports by receipt: accepted (stored as the result of a run), duplicate, conflict, refused.",
    "receipt",
)
PARTS_FAILED = _counter(
    _Q,
    "gridcast_page_part_failures_total",
    "Parts of pages that could not be computed; page stands for the whole page.",
    "page",
    "part",
)
COMMITS = _counter(_Q, counts.COMMITS, "Group commits of reports sent by HTTP.")
COMMIT_REQUESTS = _counter(_Q, counts.COMMIT_REQUESTS, "Requests that were stored in group commits.")
COMMIT_SECONDS = _counter(_Q, counts.COMMIT_SECONDS, "Time that group commits took.")

REPORTER_SEEN = _gauge(
    _R, "gridcast_reporter_last_exchange_timestamp_seconds", "Time of the last exchange.", "reporter"
)
SPOOL_RECORDS = _gauge(
    _R, "gridcast_reporter_spool_records", "Records in the spool at the last exchange.", "reporter"
)
SPOOL_BYTES = _gauge(
    _R, "gridcast_reporter_spool_bytes", "Size of the spool at the last exchange.", "reporter"
)
SPOOL_LAG = _gauge(
    _R, "gridcast_reporter_spool_lag_seconds", "Age of the oldest record at the last exchange.", "reporter"
)
DROPPED = _counter(
    _R,
    "gridcast_reporter_dropped_records_total",
    "Records that the agent dropped from its spool.",
    "reporter",
)
CLOCK_OFFSET = _gauge(
    _R, "gridcast_reporter_clock_offset_seconds", "Server's clock minus the agent's.", "reporter"
)

SITE_STATE = _gauge(
    Group.SITES,
    "gridcast_site_state",
    "1 for the present state: up, held, maintenance, down, unknown.",
    "site",
    "state",
)
SITE_SINCE = _gauge(
    Group.SITES,
    "gridcast_site_state_since_timestamp_seconds",
    "When the present state began, if known.",
    "site",
)

SERIES_COUNT = _gauge(
    _G,
    "gridcast_series_by_state",
    "Described series by the state of their newest result; none: no result yet.",
    "state",
)
SERIES_EXPORTED = _gauge(_G, "gridcast_metrics_series", "Series that this answer describes.")
SERIES_LEFT_OUT = _gauge(
    _G, "gridcast_metrics_left_out_series", "Series that this answer leaves out, because it has its maximum."
)
SERIES_INFO = MetricDefinition(
    _G,
    "info",
    "gridcast_series_info",
    "Probe, reporter and sites of a series, to join by series.",
    ("series", "suite", "probe", "reporter", "sites"),
)
SERIES_STATE = _gauge(
    _G, "gridcast_series_state", "1 for the state of the newest result.", "series", "suite", "state"
)
SERIES_PASSED = _gauge(
    _G, "gridcast_series_passed", "1 if the newest result is passed, else 0.", "series", "suite"
)
LAST_RESULT = _gauge(
    _G,
    "gridcast_series_last_result_timestamp_seconds",
    "End of the newest run that was not skipped.",
    "series",
    "suite",
)
RESULT_AGE = _gauge(
    _G, "gridcast_series_result_age_seconds", "Age of the newest result, when scraped.", "series", "suite"
)
LAST_SUCCESS = _gauge(
    _G, "gridcast_series_last_success_timestamp_seconds", "End of the newest passed run.", "series", "suite"
)
DURATION = _gauge(
    _G,
    "gridcast_series_duration_seconds",
    "Duration of the newest passed run: total, essential (without setup and cleanup), core (nor queue).",
    "series",
    "suite",
    "total",
)
STAGE = _gauge(
    Group.STAGES,
    "gridcast_series_stage_seconds",
    "Duration of a stage of the newest passed run.",
    "series",
    "suite",
    "stage",
)
STAGES_LEFT_OUT = _gauge(
    Group.STAGES,
    "gridcast_metrics_left_out_stages",
    "Series with more than 32 stages; the answer leaves out the others.",
)
FORECAST = _gauge(
    Group.FORECASTS,
    "gridcast_series_forecast_seconds",
    "Quantiles of the forecast total of the next run; none while the forecast is too old.",
    "series",
    "suite",
    "quantile",
)
SUCCESS = _gauge(
    Group.FORECASTS,
    "gridcast_series_success_probability",
    "Probability that the next run passes.",
    "series",
    "suite",
)

DEFINITIONS: Sequence[MetricDefinition] = tuple(
    value for value in list(globals().values()) if isinstance(value, MetricDefinition)
)
