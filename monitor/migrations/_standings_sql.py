"""Triggers that have series counted again when what is counted of them changes, beside their runs."""

from __future__ import annotations

_COUNTED = (
    "suite_id", "probe", "reporter_id", "enabled", "schedule", "timezone", "limit_seconds", "jitter_seconds",
    "delay_seconds", "leader_id",
)  # fmt: skip
_OLD, _NEW = (", ".join(f"{row}.{column}" for column in _COUNTED) for row in ("OLD", "NEW"))
# A follower becomes stale by the schedule of its leader. A failed run names its resource, which need not be one of
# the series any more.
CHANGES = f"""
CREATE FUNCTION monitor_recount_changed_series() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_standingchange (series_id)
        SELECT NEW.id UNION ALL SELECT id FROM monitor_series WHERE leader_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER recount_changed_series AFTER UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_recount_changed_series();
CREATE FUNCTION monitor_recount_series() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_standingchange (series_id) SELECT id FROM changed;
    RETURN NULL;
END $$;
CREATE TRIGGER recount_new_series AFTER INSERT ON monitor_series REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recount_series();
CREATE TRIGGER recount_deleted_series AFTER DELETE ON monitor_series REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recount_series();

CREATE FUNCTION monitor_recount_bound_series() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_standingchange (series_id) SELECT DISTINCT series_id FROM changed;
    RETURN NULL;
END $$;
CREATE TRIGGER recount_new_binding AFTER INSERT ON monitor_binding REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recount_bound_series();
CREATE TRIGGER recount_deleted_binding AFTER DELETE ON monitor_binding REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recount_bound_series();
CREATE FUNCTION monitor_recount_moved_binding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_standingchange (series_id) VALUES (OLD.series_id), (NEW.series_id);
    RETURN NULL;
END $$;
CREATE TRIGGER recount_moved_binding AFTER UPDATE ON monitor_binding FOR EACH ROW
    WHEN ((OLD.series_id, OLD.resource_id) IS DISTINCT FROM (NEW.series_id, NEW.resource_id))
    EXECUTE FUNCTION monitor_recount_moved_binding();

CREATE FUNCTION monitor_recount_at_resource() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[] := CASE TG_OP WHEN 'INSERT' THEN ARRAY[NEW.name] WHEN 'DELETE' THEN ARRAY[OLD.name]
        ELSE ARRAY[OLD.name, NEW.name] END;
BEGIN
    INSERT INTO monitor_standingchange (series_id)
        SELECT series_id FROM monitor_latestrun
        WHERE failed_resource = ANY (names) AND state IN ('failed', 'timed_out');
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO monitor_standingchange (series_id)
            SELECT DISTINCT series_id FROM monitor_binding WHERE resource_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER recount_at_resource AFTER INSERT OR DELETE ON monitor_resource FOR EACH ROW
    EXECUTE FUNCTION monitor_recount_at_resource();
CREATE TRIGGER recount_at_moved_resource AFTER UPDATE ON monitor_resource FOR EACH ROW
    WHEN ((OLD.name, OLD.site_id) IS DISTINCT FROM (NEW.name, NEW.site_id))
    EXECUTE FUNCTION monitor_recount_at_resource();
"""  # noqa: S608  # constants from above

# The series of a site; most have one site, which is found faster in a B-tree.
INDEXES = """
CREATE INDEX standing_first_site ON monitor_seriesstanding ((sites[1]));
CREATE INDEX standing_sites ON monitor_seriesstanding USING gin (sites) WHERE cardinality(sites) > 1;
CREATE INDEX standing_spread ON monitor_seriesstanding (series_id) WHERE cardinality(sites) > 1
"""
STATEMENTS = (INDEXES, CHANGES)
