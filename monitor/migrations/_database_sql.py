"""The SQL that Django cannot express: partitioned tables, storage parameters, triggers, the sketch function."""

from __future__ import annotations

# The primary key of a partitioned table contains the partitioning column. That of samples includes every column:
# rows lie in order of arrival, those of one metric far apart, so queries for one metric read the index alone. A
# run's id is derived from its series and slot, so it is unique all the same.
RUN = """
CREATE TABLE monitor_run (
    id uuid NOT NULL,
    slot timestamptz NOT NULL,
    state varchar(10) NOT NULL,
    reason text NOT NULL,
    attempt smallint NOT NULL CHECK (attempt >= 0),
    stage varchar(100) NOT NULL,
    claimed_at timestamptz,
    lease_until timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    failed_resource varchar(100) NOT NULL,
    series_id bigint NOT NULL,
    cause varchar(200) NOT NULL,
    trigger varchar(900) NOT NULL,
    due_at timestamptz NOT NULL,
    wait_until timestamptz,
    forced boolean NOT NULL,
    signature_id bigint,
    CONSTRAINT run_key PRIMARY KEY (id, slot)
) PARTITION BY RANGE (slot)
"""
RAW_REPORT = """
CREATE TABLE monitor_rawreport (
    run_id uuid NOT NULL,
    slot timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    packing smallint NOT NULL CHECK (packing >= 0),
    packed bytea NOT NULL,
    parsed_by smallint NOT NULL DEFAULT 1 CHECK (parsed_by >= 0),
    CONSTRAINT rawreport_key PRIMARY KEY (run_id, slot)
) PARTITION BY RANGE (slot)
"""
SAMPLE = """
CREATE TABLE monitor_sample (
    metric_id bigint NOT NULL,
    time timestamptz NOT NULL,
    known_at timestamptz NOT NULL,
    value double precision NOT NULL,
    passed boolean NOT NULL,
    CONSTRAINT sample_key PRIMARY KEY (metric_id, time) INCLUDE (known_at, value, passed)
) PARTITION BY RANGE (time)
"""
PARTITIONED_TABLES = {"Run": RUN, "RawReport": RAW_REPORT, "Sample": SAMPLE}
_REFERENCES = """
ALTER TABLE monitor_run ADD CONSTRAINT run_of_series
    FOREIGN KEY (series_id) REFERENCES monitor_series DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE monitor_run ADD CONSTRAINT run_of_signature
    FOREIGN KEY (signature_id) REFERENCES monitor_failuresignature DEFERRABLE INITIALLY DEFERRED
"""

# The fill factors leave room for updates in place of rows that are updated often. Compressed columns are not
# compressed again.
STORAGE = """
ALTER TABLE monitor_rawreport ALTER packed SET STORAGE EXTERNAL;
ALTER TABLE monitor_latestrun SET (fillfactor = 80);
ALTER TABLE monitor_forecaststate SET (fillfactor = 70);
ALTER TABLE monitor_successstate SET (fillfactor = 70);
ALTER TABLE monitor_forecaststate ALTER COLUMN state SET STORAGE EXTERNAL;
"""

# The same as ``monitor.depot.rollups.ddsketch.key``.
SKETCH_KEY = """
CREATE FUNCTION monitor_sketch_key(value double precision) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN abs(value) < 1e-09 THEN 0
    ELSE sign(value) * (1037 + ceil(ln(least(abs(value), 1e+21)) / 0.020000666706669435))
END
"""

# The same as ``monitor.runs.ledger.transitions.ALLOWED``.
_REPORTED = ("passed", "failed", "broken", "no_data", "timed_out", "skipped")
_ALLOWED = {
    "expected": ("claimed", "missed", *_REPORTED),
    "claimed": ("running", "expected", "lost", *_REPORTED),
    "running": ("expected", "lost", *_REPORTED),
    "missed": _REPORTED,
    "lost": _REPORTED,
}
_PAIRS = ", ".join(f"('{source}', '{target}')" for source, targets in _ALLOWED.items() for target in targets)

# Check and record every transition, whichever statement makes it.
TRANSITIONS = """
CREATE FUNCTION monitor_record_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (PAIRS) THEN
        RAISE EXCEPTION 'run % cannot go from % to %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO monitor_transition (run_id, source, target, at, cause)
        VALUES (NEW.id, OLD.state, NEW.state, clock_timestamp(), NEW.cause);
    RETURN NEW;
END $$;
CREATE TRIGGER record_transition BEFORE UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION monitor_record_transition();
""".replace("PAIRS", _PAIRS)

# When a run ends, or a late report corrects it, have the alerts of its series evaluated.
_COUNTED = "('passed', 'failed', 'broken', 'timed_out', 'missed', 'lost')"
RECHECKS = """
CREATE FUNCTION monitor_request_recheck() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_recheck (series_id, due_at) VALUES (NEW.series_id, to_timestamp(0));
    RETURN NULL;
END $$;
CREATE TRIGGER recheck_updated AFTER UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN COUNTED OR OLD.state IN ('missed', 'lost')) EXECUTE FUNCTION monitor_request_recheck();
CREATE TRIGGER recheck_inserted AFTER INSERT ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN COUNTED) EXECUTE FUNCTION monitor_request_recheck();
""".replace("COUNTED", _COUNTED)

# When a run ends, or a late report corrects it, tell those that follow runs; imported runs are history.
_ENDED = "('passed', 'failed', 'broken', 'no_data', 'timed_out', 'skipped', 'missed', 'lost')"
RUN_FEED = """
CREATE FUNCTION monitor_tell_ended_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_endedrun (subscriber, run, slot, state, at)
        SELECT name, NEW.id, NEW.slot, NEW.state, clock_timestamp() FROM monitor_runsubscriber;
    RETURN NULL;
END $$;
CREATE TRIGGER ended_run_updated AFTER UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN ENDED AND NEW.state <> OLD.state AND NEW.trigger NOT LIKE 'import: %')
    EXECUTE FUNCTION monitor_tell_ended_run();
CREATE TRIGGER ended_run_inserted AFTER INSERT ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN ENDED AND NEW.trigger NOT LIKE 'import: %') EXECUTE FUNCTION monitor_tell_ended_run();
""".replace("ENDED", _ENDED)

# When a schedule changes, have the series and its followers expanded again.
_TIMING = (
    "schedule", "timezone", "starts_at", "ends_at", "enabled", "jitter_seconds", "leader_id", "follows",
    "delay_seconds",
)  # fmt: skip
_OLD, _NEW = (", ".join(f"{row}.{column}" for column in _TIMING) for row in ("OLD", "NEW"))
RESCHEDULING = f"""
CREATE FUNCTION monitor_series_rescheduled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.scheduled_since := NULL;
    NEW.expanded_until := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER series_rescheduled BEFORE UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_series_rescheduled();
CREATE FUNCTION monitor_leader_rescheduled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE monitor_series SET scheduled_since = NULL, expanded_until = NULL WHERE leader_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER leader_rescheduled AFTER UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_leader_rescheduled();
"""  # noqa: S608 - constants from above

# When a series gets another reporter, remember until when the former one ran it.
FORMER_REPORTERS = """
CREATE FUNCTION monitor_reporter_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_formerreporter (series_id, reporter_id, until)
        VALUES (OLD.id, OLD.reporter_id, clock_timestamp())
        ON CONFLICT (series_id, reporter_id) DO UPDATE SET until = EXCLUDED.until;
    RETURN NULL;
END $$;
CREATE TRIGGER reporter_changed AFTER UPDATE OF reporter_id ON monitor_series FOR EACH ROW
    WHEN (OLD.reporter_id <> NEW.reporter_id) EXECUTE FUNCTION monitor_reporter_changed();
"""

# A hold refers to its scope by name: rename it with the scope, end it when the scope is deleted.
_HOLDS = """
CREATE FUNCTION monitor_hold_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE monitor_hold SET ended_at = clock_timestamp(), ended_by = 'it was removed'
            WHERE kind = TG_ARGV[0] AND name = OLD.name AND ended_at IS NULL;
    ELSIF NEW.name <> OLD.name THEN
        UPDATE monitor_hold SET name = NEW.name
            WHERE kind = TG_ARGV[0] AND name = OLD.name AND ended_at IS NULL;
    END IF;
    RETURN NULL;
END $$;
"""
HOLDS = _HOLDS + "".join(
    f"CREATE TRIGGER hold_follows AFTER UPDATE OF name OR DELETE ON monitor_{kind} FOR EACH ROW"
    f" EXECUTE FUNCTION monitor_hold_follows('{kind}');"
    for kind in ("series", "suite", "site", "reporter")
)

# When a result of a past day, its cause or a verdict on it changes, or maintenance, have the availability of the
# affected days computed again. Today is computed every few minutes: most runs insert nothing. A window marks the
# days of all sites, because a window without sites is everywhere; a site that joins or leaves it marks its own.
_PAST = "NEW.slot < date_trunc('day', now(), 'UTC')"
_RESULTS = "NEW.state IN ('passed', 'failed', 'timed_out')"
DIRTY_DAYS = f"""
CREATE FUNCTION monitor_mark_result_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyday (series_id, first, last)
        VALUES (NEW.series_id, (NEW.slot AT TIME ZONE 'UTC')::date, (NEW.slot AT TIME ZONE 'UTC')::date);
    RETURN NULL;
END $$;
CREATE TRIGGER day_of_new_result AFTER INSERT ON monitor_run FOR EACH ROW
    WHEN ({_PAST} AND {_RESULTS}) EXECUTE FUNCTION monitor_mark_result_day();
CREATE TRIGGER day_of_changed_result AFTER UPDATE OF state, signature_id ON monitor_run FOR EACH ROW
    WHEN ({_PAST} AND {_RESULTS}
        AND (OLD.state, OLD.signature_id) IS DISTINCT FROM (NEW.state, NEW.signature_id))
    EXECUTE FUNCTION monitor_mark_result_day();
CREATE TRIGGER day_of_verdict AFTER INSERT ON monitor_attributedrun FOR EACH ROW
    WHEN ({_PAST}) EXECUTE FUNCTION monitor_mark_result_day();

CREATE FUNCTION monitor_mark_every_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyday (first, last) VALUES ('1970-01-01', (now() AT TIME ZONE 'UTC')::date);
    RETURN NULL;
END $$;
CREATE TRIGGER days_of_signature AFTER UPDATE OF counts_against_site ON monitor_failuresignature FOR EACH ROW
    WHEN (OLD.counts_against_site <> NEW.counts_against_site) EXECUTE FUNCTION monitor_mark_every_day();

CREATE FUNCTION monitor_mark_suspicion_days() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_dirtyday (first, last)
        VALUES ((NEW.since AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date);
    RETURN NULL;
END $$;
CREATE TRIGGER days_of_suspicion AFTER INSERT OR UPDATE OF resolved_at ON monitor_incident FOR EACH ROW
    WHEN (NEW.kind = 'monitor') EXECUTE FUNCTION monitor_mark_suspicion_days();

CREATE FUNCTION monitor_mark_window_days(one monitor_maintenancewindow, only_site bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO monitor_dirtyday (site_id, first, last)
    SELECT only_site, first, last FROM (
        SELECT coalesce((one.starts_at AT TIME ZONE 'UTC')::date, '1970-01-01') AS first,
            least(CASE WHEN one.schedule = ''
                THEN ((one.ends_at - interval '1 microsecond') AT TIME ZONE 'UTC')::date END,
                (now() AT TIME ZONE 'UTC')::date) AS last
    ) AS days WHERE first <= last
$$;
CREATE FUNCTION monitor_window_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM monitor_mark_window_days(OLD, NULL);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM monitor_mark_window_days(NEW, NULL);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER days_of_window AFTER INSERT OR DELETE OR UPDATE OF starts_at, ends_at, schedule, timezone,
    duration_seconds ON monitor_maintenancewindow FOR EACH ROW EXECUTE FUNCTION monitor_window_changed();
CREATE FUNCTION monitor_window_site_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    joined record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    PERFORM monitor_mark_window_days(each, joined.site_id)
        FROM monitor_maintenancewindow AS each WHERE each.id = joined.maintenancewindow_id;
    RETURN NULL;
END $$;
CREATE TRIGGER days_of_window_site AFTER INSERT OR DELETE ON monitor_maintenancewindow_sites FOR EACH ROW
    EXECUTE FUNCTION monitor_window_site_changed();
"""  # noqa: S608 - constants from above

# Events of the audit record expire; nothing else may change them.
AUDIT = """
CREATE FUNCTION monitor_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('gridcast.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit record cannot be changed' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE ON monitor_auditevent FOR EACH ROW
    EXECUTE FUNCTION monitor_keep_audit();
"""

# The accounts of services (core/db/accounts.py) own no table, and late reports need partitions all the same: the
# function runs with the rights of the owner. A table is created, then attached: unlike CREATE ... PARTITION OF,
# this blocks no reader and no writer.
# Rows are inserted, hardly ever updated. By default autovacuum waits until a fifth of a partition is new, and
# until then index-only scans read the heap as well. Partitions do not inherit storage parameters.
ATTACH_PARTITION = """
CREATE FUNCTION monitor_attach_partition(parent text, label text, starts timestamptz, ends timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    partition text := parent || '_' || label;
BEGIN
    IF parent NOT IN ('monitor_run', 'monitor_rawreport', 'monitor_sample')
        OR label !~ '^[0-9]{4}(_[0-9]{2})?$' THEN
        RAISE EXCEPTION 'no table of gridcast has the partition %', partition;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (autovacuum_vacuum_insert_scale_factor = 0.05,'
        ' autovacuum_analyze_scale_factor = 0.05)', partition, parent);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, starts, ends);
END $$
"""

STATEMENTS = (
    ATTACH_PARTITION,
    _REFERENCES,
    STORAGE,
    SKETCH_KEY,
    TRANSITIONS,
    RECHECKS,
    RUN_FEED,
    RESCHEDULING,
    FORMER_REPORTERS,
    HOLDS,
    DIRTY_DAYS,
    AUDIT,
)
