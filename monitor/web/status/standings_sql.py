"""SQL of the counts of latest states: count series again, and subtract what is counted of some series."""

from __future__ import annotations

from monitor.models.latest_run import TREND_RUNS
from monitor.models.run import State
from monitor.models.series import IMPORTED
from monitor.runs.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES
from monitor.web.status.latest import STATE_OR_SKIPPED
from monitor.web.status.series_states import (
    ELSEWHERE,
    HERE,
    MONITORING,
    PASSED,
    SKIPPED,
    SOMEWHERE,
    STALE,
    UNKNOWN,
)

KEPT = "interval '2 hours'"  # outcomes are counted for so long


def _letters(states: tuple[State, ...]) -> str:
    return ", ".join(f"'{state[0]}'" for state in states)


# The same as ``series_states.standings``, of the row ``counted`` as seen from the site ``at``.
STANDING = f"""CASE WHEN counted.is_stale THEN {STALE}
    WHEN counted.state = 'p' THEN {PASSED}
    WHEN counted.state IN ({_letters(GRID_FAILURES)}) THEN CASE counted.culprit
        WHEN 0 THEN {SOMEWHERE} WHEN at THEN {HERE} ELSE {ELSEWHERE} END
    WHEN counted.state IN ({_letters(MONITOR_FAILURES)}) THEN {MONITORING}
    WHEN counted.state = 's' THEN {SKIPPED} ELSE {UNKNOWN} END"""
_COLUMNS = (
    "series_id, suite_id, reporter_id, probe, sites, state, culprit, ended_at, stale_at, is_stale, slots,"
    " outcomes, is_uncounted"
)
_EXCLUDED = ", ".join(f"excluded.{column}" for column in _COLUMNS.split(", "))
_KEY = "suite_id, site_id, probe, reporter_id, standing, state"
_NEW = f"""
SELECT given.id AS series_id, suite_id, reporter_id, probe,
    coalesce((
        SELECT array_agg(DISTINCT site_id) FROM monitor_binding AS binding
        JOIN monitor_resource AS resource ON resource.id = binding.resource_id
        WHERE binding.series_id = given.id
    ), '{{}}') AS sites,
    coalesce(letter, '') AS state, coalesce(blamed.site_id, 0) AS culprit, ended_at, stale.at AS stale_at,
    coalesce(stale.at < %(now)b, false) AS is_stale, coalesce(slots[old + 1:], '{{}}') AS slots,
    coalesce(substr(outcomes, old + 1), '') AS outcomes,
    starts_with(given.probe, '{IMPORTED}') OR coalesce(
        length(outcomes) >= {TREND_RUNS} AND slots[{TREND_RUNS}] < slots[1] + interval '1 hour', false
    ) AS is_uncounted
FROM unnest(%(id)b::bigint[], %(suite)b::bigint[], %(reporter)b::bigint[], %(probe)b::text[],
    %(allowed)b::float8[]) AS given (id, suite_id, reporter_id, probe, allowed)
LEFT JOIN (
    SELECT series_id, left({STATE_OR_SKIPPED}, 1) AS letter, coalesce(ended_at, slot) AS ended_at, slots,
        outcomes, failed_resource, width_bucket(%(now)b - {KEPT}, slots) AS old
    FROM monitor_latestrun
) AS latest ON latest.series_id = given.id
LEFT JOIN monitor_resource AS blamed ON blamed.name = latest.failed_resource
CROSS JOIN LATERAL (
    SELECT CASE WHEN letter NOT IN ('', 's') AND allowed < 'infinity'
        THEN ended_at + allowed * interval '1 second' END AS at
) AS stale
"""  # noqa: S608  # constants
CONFIGURED = """
SELECT series.id, series.suite_id, series.reporter_id, series.probe, leader.schedule, leader.timezone,
    series.limit_seconds, series.jitter_seconds + series.delay_seconds, series.enabled AND leader.enabled
FROM monitor_series AS series
JOIN monitor_series AS leader ON leader.id = coalesce(series.leader_id, series.id)
WHERE series.id = ANY (%b::bigint[])
"""
# One statement, so that what is counted and the counts change together. Each key occurs once, in order.
RECOUNT = f"""
WITH new AS MATERIALIZED ({_NEW}), old AS MATERIALIZED (
    SELECT {_COLUMNS} FROM monitor_seriesstanding WHERE series_id = ANY (%(all)b::bigint[])
), written AS (
    INSERT INTO monitor_seriesstanding ({_COLUMNS}) SELECT {_COLUMNS} FROM new
    ON CONFLICT (series_id) DO UPDATE SET ({_COLUMNS}) = ROW ({_EXCLUDED})
), deleted AS (
    DELETE FROM monitor_seriesstanding
    WHERE series_id = ANY (%(all)b::bigint[]) AND NOT series_id = ANY (%(id)b::bigint[])
), changes AS (
    SELECT {_COLUMNS}, -1 AS n FROM old UNION ALL SELECT {_COLUMNS}, 1 FROM new
), runs AS (
    INSERT INTO monitor_outcomecount AS stored (slot, suite_id, outcome, n)
    SELECT slot, suite_id, outcome, sum(n) FROM changes,
        unnest(slots, string_to_array(outcomes, NULL)) AS run (slot, outcome)
    WHERE slot > %(now)b - {KEPT} AND NOT is_uncounted
    GROUP BY 1, 2, 3 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (slot, suite_id, outcome) DO UPDATE SET n = stored.n + excluded.n
)
INSERT INTO monitor_standingcount AS stored ({_KEY}, n)
SELECT suite_id, at, probe, reporter_id, {STANDING}, state, sum(n)
FROM changes AS counted, unnest(0 || sites) AS at
GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(n) <> 0 ORDER BY 1, 2, 3, 4, 5, 6
ON CONFLICT ({_KEY}) DO UPDATE SET n = stored.n + excluded.n
"""  # noqa: S608  # constants
DUE = """
WITH changed AS (
    DELETE FROM monitor_standingchange WHERE id IN (
        SELECT id FROM monitor_standingchange ORDER BY id LIMIT %(most)b
    ) RETURNING series_id
)
SELECT series_id FROM changed UNION (
    SELECT series_id FROM monitor_seriesstanding WHERE NOT is_stale AND stale_at < %(now)b LIMIT %(most)b
)
"""
PRUNE = f"DELETE FROM monitor_outcomecount WHERE slot < %(now)b - {KEPT}"  # noqa: S608  # a constant
# The series whose counted states are not those of now.
OUTDATED = """
SELECT series_id FROM monitor_standingchange
UNION SELECT series_id FROM monitor_seriesstanding WHERE NOT is_stale AND stale_at < %(now)b
UNION SELECT series_id FROM monitor_seriesstanding WHERE is_stale AND stale_at >= %(now)b
UNION SELECT series_id FROM monitor_seriesstanding WHERE is_uncounted
"""
# The counts without those of some series: both are read by one statement, so that they belong together.
COUNTS = f"""
FROM (
    SELECT suite_id, site_id, probe, standing, n FROM monitor_standingcount
    WHERE suite_id = ANY (%b::bigint[])
    UNION ALL
    SELECT suite_id, at, probe, {STANDING}, -1 FROM monitor_seriesstanding AS counted,
        unnest(0 || sites) AS at
    WHERE suite_id = ANY (%b::bigint[]) AND series_id = ANY (%b::bigint[])
) AS counts
WHERE n <> 0
"""  # noqa: S608  # constants
RUNS = """
SELECT outcome, sum(n)::bigint FROM (
    SELECT outcome, n FROM monitor_outcomecount
    WHERE slot > %(start)b AND slot <= %(end)b AND suite_id = ANY (%(suites)b::bigint[])
    UNION ALL
    SELECT run.outcome, -1 FROM monitor_seriesstanding AS counted,
        unnest(slots, string_to_array(outcomes, NULL)) AS run (slot, outcome)
    WHERE run.slot > %(start)b AND run.slot <= %(end)b AND suite_id = ANY (%(suites)b::bigint[])
        AND series_id = ANY (%(without)b::bigint[]) AND NOT is_uncounted
) AS runs
GROUP BY 1
"""
_IS_FAILING = f"state IN ({_letters((*GRID_FAILURES, *MONITOR_FAILURES))})"
FAILING = f"""
FROM monitor_seriesstanding AS counted
WHERE suite_id = ANY (%b::bigint[]) AND {_IS_FAILING} AND series_id <> ALL (%b::bigint[])
"""  # constants
FAILING_SERIES = f"SELECT series_id FROM monitor_seriesstanding WHERE {_IS_FAILING}"  # noqa: S608  # constants
FAILING_AT_SITES = f"""
SELECT culprit, count(*) FROM monitor_seriesstanding
WHERE suite_id = ANY (%(suites)b::bigint[]) AND state IN ({_letters(GRID_FAILURES)}) AND culprit <> 0
    AND series_id <> ALL (%(without)b::bigint[])
GROUP BY 1
"""  # noqa: S608  # constants
# A row for each series at each of some sites: by its first site, and by the others of series with several.
AT_SITES = """
FROM (
    SELECT sites[1] AS site_id, series_id, suite_id, probe, state, culprit, ended_at, stale_at
    FROM monitor_seriesstanding WHERE sites[1] = ANY (%(sites)b::bigint[])
    UNION ALL
    SELECT at, series_id, suite_id, probe, state, culprit, ended_at, stale_at
    FROM monitor_seriesstanding, unnest(sites[2:]) AS at
    WHERE cardinality(sites) > 1 AND sites && %(sites)b::bigint[] AND at = ANY (%(sites)b::bigint[])
) AS counted
WHERE suite_id = ANY (%(suites)b::bigint[]) AND series_id <> ALL (%(without)b::bigint[])
"""
# How many series each site has, and their newest result and best freshness (``site_list._BEST_FIRST``).
TOTALS = f"""
SELECT site_id, count(*), max(ended_at), min(CASE
    WHEN ended_at IS NULL THEN 3 WHEN stale_at < %(now)b THEN 1 ELSE 0 END)
{AT_SITES}
GROUP BY 1
"""  # constants
BY_REPORTER = """
SELECT reporter_id, state, sum(n)::bigint FROM (
    SELECT reporter_id, state, n FROM monitor_standingcount
    WHERE site_id = 0 AND suite_id = ANY (%(suites)b::bigint[])
        AND reporter_id = ANY (%(reporters)b::bigint[])
    UNION ALL
    SELECT reporter_id, state, -1 FROM monitor_seriesstanding
    WHERE suite_id = ANY (%(suites)b::bigint[]) AND reporter_id = ANY (%(reporters)b::bigint[])
        AND series_id = ANY (%(without)b::bigint[])
) AS counts
GROUP BY 1, 2
"""
