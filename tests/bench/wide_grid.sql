-- What pages show, beside the series, latest runs and samples that overview.LOAD creates: its temporary
-- table wide has the series. Loaded without triggers. Names with a dollar are constants of wide_grid.py.

-- The last series of each site uses the next site as well, so that there are links; every twentieth is an
-- application; agents run the series of fifty sites.
UPDATE monitor_site SET title = 'Computing centre ' || id, latitude = 25 + 40 * random(),
    longitude = -120 + 140 * random(), is_public = id % 25 = 0;
INSERT INTO monitor_reporter (name, capacity, site_id)
SELECT 'agent-' || id, 4, id FROM monitor_site WHERE id % 10 = 0;
INSERT INTO monitor_reporterstatus (reporter_id, seen_at, started_at, hostname, archive_sha256, version,
    python, assignment_version, assignment_error, policy_status, policy_sha256, policy_error, policy_summary,
    pending_approvals, spool_records, spool_bytes, dropped_records, in_flight, messages)
SELECT id, now(), now() - interval '3 days', name || '.example.org', repeat('ab', 32), '1.0', '3.12', 3, '',
    'absent', '', '', '{}', 0, 0, 0, 0, 1, '[]'
FROM monitor_reporter WHERE site_id IS NOT NULL;
UPDATE monitor_series AS series SET reporter_id = reporter.id
FROM monitor_binding AS binding JOIN monitor_resource AS resource ON resource.id = binding.resource_id
JOIN monitor_reporter AS reporter ON reporter.site_id = resource.site_id
WHERE binding.series_id = series.id;
UPDATE monitor_series SET scheduled_since = created_at, expanded_until = now() + interval '12 hours',
    kind = CASE WHEN split_part(name, '-', 4)::int % 20 = 0 THEN 'application' ELSE kind END;
INSERT INTO monitor_binding (series_id, resource_id, role, position)
SELECT wide.id, next.id, 'partner', 0 FROM wide JOIN monitor_resource AS next
ON next.name = 'host-of-site-' || 1 + split_part(wide.name, '-', 2)::int % $sites
WHERE wide.name LIKE '%-login-$series';
INSERT INTO monitor_currentsegment (series_id, segment_id, setup, application, path, resources)
SELECT wide.id, segment.id, repeat('a', 32), 'login', 'target=' || wide.host, wide.host
FROM wide JOIN monitor_segment AS segment ON segment.series_id = wide.id;

-- Half a day of runs of all series, as much ahead, and failed runs of forty days.
CREATE TEMPORARY TABLE signatures AS
SELECT array_agg(id ORDER BY id) AS ids FROM monitor_failuresignature WHERE name LIKE 'cause-%';
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at, signature_id)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', CASE WHEN is_failed THEN 'failed' ELSE 'passed' END,
    CASE WHEN is_failed THEN 'stage run at ' || host || ': write failed' ELSE '' END, 1,
    CASE WHEN is_failed THEN (ARRAY['run', 'init', 'transfer', 'cleanup'])[1 + id % 4] ELSE '' END,
    CASE WHEN is_failed THEN host ELSE '' END, '', false, slot, slot + interval '5 s',
    CASE WHEN is_failed THEN ids[1 + (id / 100 + ago) % $signatures] END
FROM wide, signatures, generate_series(1, 11) AS ago,
    LATERAL (SELECT date_trunc('minute', now()) - make_interval(hours => ago, mins => id::int % 60) AS slot,
        (id + ago * 7) % 100 = 1 AS is_failed) AS at;
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at, signature_id)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', 'failed', 'stage run at ' || host || ': write failed',
    1, 'run', host, '', false, slot, slot + interval '5 s', ids[1 + (id / 100 + ago) % $signatures]
FROM wide, signatures, generate_series(1, 40) AS ago, LATERAL (
    SELECT date_trunc('minute', now()) - make_interval(days => ago, mins => id::int % 1440) AS slot
) AS at
WHERE (id + ago * 7) % 50 = 1;
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', 'expected', '', 0, '', '', '', false
FROM wide, generate_series(0, 11) AS ahead, LATERAL (
    SELECT date_trunc('minute', now()) + make_interval(hours => ahead, mins => 1 + id::int % 60) AS slot
) AS at;
UPDATE monitor_run SET signature_id = ids[1 + extract(epoch FROM slot)::bigint / 60 % $signatures]
FROM signatures WHERE state = 'failed' AND signature_id IS NULL;
INSERT INTO monitor_transition (run_id, source, target, at, cause)
SELECT id, 'running', 'failed', ended_at, '' FROM monitor_run WHERE state = 'failed';

-- Incidents: three hundred open ones of ten times as many. A tenth of all series has had alerts.
INSERT INTO monitor_incident (id, signature_id, kind, name, condition, headline, since, opened_at,
    resolved_at, acknowledged_by, assigned_to, is_held, silenced_by, resolved_by, resolution)
OVERRIDING SYSTEM VALUE
SELECT n, ids[1 + n % $signatures], 'at', 'site-' || 1 + n % $sites, '', '', opened, opened,
    CASE WHEN n > 300 THEN opened + interval '5 hours' END, '', '', false, '', '', ''
FROM signatures, generate_series(1, 3000) AS n,
    LATERAL (SELECT now() - make_interval(mins => n * 12) AS opened) AS at;
SELECT setval(pg_get_serial_sequence('monitor_incident', 'id'), 3000);
INSERT INTO monitor_incidentseries (incident_id, series_id, since, until)
SELECT incident.id, wide.id, incident.since, incident.resolved_at
FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM wide) AS wide, monitor_incident AS incident
WHERE incident.id = 1 + wide.n % 3000 AND wide.n % 7 < 3;
INSERT INTO monitor_incidentevent (incident_id, at, action, series_id, "user", text)
SELECT incident_id, since, 'affected', series_id, '', '' FROM monitor_incidentseries;
INSERT INTO monitor_alertrule (name, title, enabled, everything, probes, severity, condition, threshold,
    notify, judged_as, is_default)
SELECT 'rule-' || n, '', true, n = 1, '{}', 'major', 'failures_in_row', n, '[{"kind": "log"}]', '', false
FROM generate_series(1, 50) AS n;
INSERT INTO monitor_alertrule_sites (alertrule_id, site_id)
SELECT rule.id, site.id FROM monitor_alertrule AS rule, monitor_site AS site
WHERE site.id % 50 = rule.id % 50 AND NOT rule.everything;
INSERT INTO monitor_alert (rule_id, series_id, since, opened_at, closed_at, text, closed_text,
    acknowledged_by, incident_id)
SELECT rule.id, wide.id, at, at, CASE WHEN n > 1500 THEN at + interval '1 hour' END, '3 runs in a row failed',
    '', '', 1 + n % 300
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM wide LIMIT 10000) AS wide,
    monitor_alertrule AS rule, LATERAL (SELECT now() - make_interval(mins => n::int) AS at) AS moment
WHERE rule.everything;

-- Holds, maintenance, the audit record, verdicts.
INSERT INTO monitor_hold (kind, name, mode, who, why, began_at, until, ended_at, ended_by, ended_why)
SELECT kind, name, 'pause', 'ada', 'disk swap', at, NULL,
    CASE WHEN n > 60 THEN at + interval '2 hours' END, CASE WHEN n > 60 THEN 'ada' ELSE '' END,
    CASE WHEN n > 60 THEN 'done' ELSE '' END
FROM generate_series(1, 5000) AS n, LATERAL (
    SELECT CASE n % 10 WHEN 1 THEN 'site' ELSE 'series' END AS kind,
        'site-' || 1 + n % $sites || CASE n % 10 WHEN 1 THEN '' ELSE '-login-' || 1 + n % 7 END AS name,
        now() - make_interval(mins => n * 17) AS at
) AS what;
INSERT INTO monitor_maintenancewindow (name, title, starts_at, ends_at, schedule, timezone, source, uid, url)
SELECT 'window-' || n, 'new disks', at, at + interval '4 hours', '', 'UTC', '', '', ''
FROM generate_series(1, 1000) AS n, LATERAL (SELECT now() + make_interval(hours => 200 - n) AS at) AS at;
INSERT INTO monitor_maintenancewindow_sites (maintenancewindow_id, site_id)
SELECT maintenance.id, site.id FROM monitor_maintenancewindow AS maintenance
JOIN monitor_site AS site ON site.id % $sites = maintenance.id % $sites;
INSERT INTO monitor_auditevent (at, last_at, repeats, outcome, channel, "user", token, session, address,
    action, target, status, changes)
SELECT at, at, 1, CASE n % 20 WHEN 0 THEN 'denied' ELSE 'done' END, 'page', 'user-' || n % 30, '', '',
    '192.0.2.1', 'POST holds/<slug:kind>/<slug:name>/act/', '/holds/site/site-' || n % $sites || '/act/', 302,
    '[]'
FROM generate_series(1, 100000) AS n, LATERAL (SELECT now() - make_interval(mins => n * 5) AS at) AS at;
INSERT INTO monitor_attribution (kind, name, probability, failed, total, since, latest_at, decided_at,
    ended_at)
SELECT 'site', 'site-' || 1 + n % $sites, 0.97, 5, 7, at, at, at,
    CASE WHEN n > 20 THEN at + interval '1 hour' END
FROM generate_series(1, 500) AS n, LATERAL (SELECT now() - make_interval(hours => n) AS at) AS at;
INSERT INTO monitor_attributedrun (attribution_id, run, slot, series_id)
SELECT attribution.id, run.id, run.slot, run.series_id
FROM (
    SELECT *, row_number() OVER () AS n FROM monitor_run
    WHERE state = 'failed' AND slot > now() - interval '1 day'
) AS run
JOIN (SELECT id, row_number() OVER () AS n FROM monitor_attribution) AS attribution
ON attribution.n = 1 + run.n % 500;

-- Forecasts, scored and current, and a month of daily scores.
INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, at, level, last_time, last_known_at,
    last_value, n, mean, median, lower, upper, quantiles, truth, truth_time, below, upto, counts)
SELECT metric.id, moment, 'blend', '', NULL, 0.8, moment, moment, 1, 24, 1.5, 1.5, 1, 2, levels,
    CASE WHEN ago > 0 THEN 1.4 END, CASE WHEN ago > 0 THEN moment + interval '1 hour' END,
    CASE WHEN ago > 0 THEN 3 END, CASE WHEN ago > 0 THEN 3 END, true
FROM monitor_metric AS metric, generate_series(0, 2) AS ago,
    (SELECT array_agg(1 + q * 0.02) AS levels FROM generate_series(1, $levels) AS q) AS quantile,
    LATERAL (SELECT now() - make_interval(hours => ago) AS moment) AS at;
INSERT INTO monitor_forecaststate (metric_id, is_behind, n, last_time, last_value, stale_at, record_n,
    mean_absolute_error, relative_error, mean_absolute_scaled_error, winkler_score, less, most, forecast_id,
    median)
SELECT metric_id, false, 24, issued_at, 1, now() + interval '1 day', 20, 0.1, 0.05, 0.7, 1.1, counted,
    counted, id, median
FROM monitor_forecast, (SELECT array_agg(q) AS counted FROM generate_series(1, $levels) AS q) AS counts
WHERE truth IS NULL;
INSERT INTO monitor_successstate (series_id, is_behind, n, probability, expected_seconds, quantiles)
SELECT id, false, 24, 0.9, 2, levels FROM wide,
    (SELECT array_agg(1 + q * 0.02) AS levels FROM generate_series(1, $levels) AS q) AS quantile;
INSERT INTO monitor_dayscore (day, suite_id, site_id, metric, unit, method, n, absolute_error, last_value_n,
    last_value_error, compared_error, actual, interval_n, within_80, within_90)
SELECT current_date - ago, suite.id, site.id, 'total.seconds', 'seconds', method, 480, 48, 480, 60, 48, 700,
    480, 390, 430
FROM monitor_suite AS suite, (SELECT id FROM monitor_site UNION ALL SELECT NULL) AS site,
    generate_series(0, 30) AS ago, unnest(ARRAY['blend', 'median']) AS method;

-- Daily rollups, availability and recomputations.
INSERT INTO monitor_dayrollup (metric_id, bucket, n, passed, mean, min, max, stdev, sketch)
SELECT metric.id, date_trunc('day', now(), 'UTC') - make_interval(days => ago), 24, 24, 1.5, 1, 2, 0.3,
    '{1000,1010,1020,1030}'
FROM monitor_metric AS metric, generate_series(1, 10) AS ago;
INSERT INTO monitor_siteday (site_id, service, day, up_seconds, unknown_seconds, scheduled_seconds,
    down_seconds, version_id, until, computed_at, is_dirty)
SELECT site.id, service, day, 80000, 0, 3000, 3400, $version, day + interval '1 day', now(), false
FROM monitor_site AS site, unnest(ARRAY['', 'login']) AS service, generate_series(0, 70) AS ago,
    LATERAL (SELECT current_date - ago::int AS day) AS at;
INSERT INTO monitor_sitemonth (site_id, service, month, up_seconds, unknown_seconds, scheduled_seconds,
    down_seconds, created_at, published_at, has_late_data)
SELECT site_id, service, date_trunc('month', day)::date, sum(up_seconds), sum(unknown_seconds),
    sum(scheduled_seconds), sum(down_seconds), now(), now(), false
FROM monitor_siteday GROUP BY 1, 2, 3;
INSERT INTO monitor_recomputation (requester, reason, at, first, last)
SELECT 'ada', 'late reports', now() - make_interval(hours => n), current_date - 30, current_date - 20
FROM generate_series(1, 200) AS n;
INSERT INTO monitor_recomputedperiod (recomputation_id, site_id, site_name, day, is_month, before, after,
    before_version, after_version)
SELECT recomputation.id, site.id, site.name, current_date - 30, false, '{1,2,3,4}', '{1,2,3,4}', 'default-1',
    'default-1'
FROM monitor_recomputation AS recomputation JOIN monitor_site AS site ON site.id % 50 = recomputation.id % 50;
INSERT INTO monitor_heartbeat (name, seen_at) VALUES ('beat', now() + interval '1 day');
