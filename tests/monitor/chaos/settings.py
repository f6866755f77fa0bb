"""Settings for the chaos test: leases expire within seconds, and no slot is too old to be run."""

from __future__ import annotations

from monitor.settings import *  # noqa: F403

GRIDCAST_LEASE_SECONDS = 3
GRIDCAST_HEARTBEAT_SECONDS = 1
GRIDCAST_GRACE_SECONDS = 7200
CELERY_BEAT_SCHEDULE = {
    "tick": {"task": "monitor.tasks.tick", "schedule": 1.0, "options": {"expires": 5}},
    "heartbeat": {
        "task": "monitor.tasks.heartbeat",
        "schedule": 1.0,
        "options": {"expires": 5, "queue": "reporter.home"},
    },
}
