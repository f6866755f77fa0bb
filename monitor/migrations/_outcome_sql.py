"""Triggers that note which stored outcomes of runs are outdated: ``monitor.models.outcome_counts``."""

from __future__ import annotations

# Failures during planned maintenance of a site of their series are told from others. Whether the hours of a
# window without an end are over is of no account: the worker counts hours that have failures.
_WINDOW = "coalesce(one.starts_at, '1970-01-01'), CASE WHEN one.schedule = '' THEN one.ends_at ELSE now() END"
# Late runs whose samples have expired mark no dirty hour; other runs are noted when dirty hours are gathered.
_LATE = "NEW.slot < now() - interval '1 day' AND NEW.state IN ('passed', 'failed', 'broken', 'timed_out')"
STATEMENTS = (
    f"""
CREATE FUNCTION monitor_note_window(one monitor_maintenancewindow) RETURNS void LANGUAGE sql AS $$
    INSERT INTO monitor_dirtyoutcome (what, first, last)
    SELECT 'failures', first, greatest(last, first + interval '1 hour') FROM (
        SELECT date_trunc('hour', first, 'UTC') AS first, date_trunc('hour', last, 'UTC') AS last
        FROM (VALUES ({_WINDOW})) AS bounds (first, last)
    ) AS hours WHERE first < now()
$$;
CREATE FUNCTION monitor_note_changed_window() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM monitor_note_window(OLD);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM monitor_note_window(NEW);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outcomes_of_window AFTER INSERT OR DELETE OR UPDATE OF starts_at, ends_at, schedule, timezone,
    duration_seconds ON monitor_maintenancewindow FOR EACH ROW EXECUTE FUNCTION monitor_note_changed_window();
CREATE FUNCTION monitor_note_window_site() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    joined record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    PERFORM monitor_note_window(each)
        FROM monitor_maintenancewindow AS each WHERE each.id = joined.maintenancewindow_id;
    RETURN NULL;
END $$;
CREATE TRIGGER outcomes_of_window_site AFTER INSERT OR DELETE ON monitor_maintenancewindow_sites FOR EACH ROW
    EXECUTE FUNCTION monitor_note_window_site();
""",  # noqa: S608 - a constant from above
    """
CREATE FUNCTION monitor_note_binding() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO monitor_dirtyoutcome (series_id, what, first, last)
        SELECT series_id, 'failures', '1970-01-01', now()
        FROM monitor_latestrun WHERE series_id = changed.series_id;  -- none of a new series
    RETURN NULL;
END $$;
CREATE TRIGGER outcomes_of_binding AFTER INSERT OR DELETE OR UPDATE ON monitor_binding FOR EACH ROW
    EXECUTE FUNCTION monitor_note_binding();
CREATE FUNCTION monitor_note_moved_resource() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyoutcome (series_id, what, first, last)
        SELECT DISTINCT series_id, 'failures', timestamptz '1970-01-01', now()
        FROM monitor_binding WHERE resource_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER outcomes_of_resource AFTER UPDATE OF site_id ON monitor_resource FOR EACH ROW
    WHEN (OLD.site_id <> NEW.site_id) EXECUTE FUNCTION monitor_note_moved_resource();
""",
    """
CREATE FUNCTION monitor_note_suites() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyoutcome (what, first, last) VALUES ('suites', '1970-01-01', now());
    RETURN NULL;
END $$;
CREATE TRIGGER outcomes_of_suite AFTER UPDATE OF suite_id ON monitor_series FOR EACH ROW
    WHEN (OLD.suite_id <> NEW.suite_id) EXECUTE FUNCTION monitor_note_suites();
CREATE TRIGGER outcomes_of_deleted_series AFTER DELETE ON monitor_series FOR EACH STATEMENT
    EXECUTE FUNCTION monitor_note_suites();
""",
    f"""
CREATE FUNCTION monitor_note_expired_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyoutcome (series_id, what, first, last)
        SELECT NEW.series_id, 'runs', bin, bin
        FROM date_bin('10 minutes', NEW.slot, '2000-01-01 00:00Z') AS bin
        WHERE EXISTS (
            SELECT FROM monitor_retentioncutoff
            WHERE series_id = NEW.series_id AND kind = 'samples' AND kept_from > NEW.slot
        );
    RETURN NULL;
END $$;
CREATE TRIGGER outcome_of_new_expired_run AFTER INSERT ON monitor_run FOR EACH ROW
    WHEN ({_LATE}) EXECUTE FUNCTION monitor_note_expired_run();
CREATE TRIGGER outcome_of_expired_run AFTER UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN ({_LATE}) EXECUTE FUNCTION monitor_note_expired_run();
""",  # noqa: S608 - a constant from above
)
