"""A number that changes soon after each change of the depot."""

from __future__ import annotations

from monitor.core.db import binary

# Rows that change all the time without a page that shows them.
_UNSHOWN = ["monitor_heartbeat", "monitor_auditevent", "monitor_apitoken"]
_COUNT = """
SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables
WHERE relname LIKE 'monitor\\_%%' AND NOT relname = ANY (%(unshown)b)
"""


def change_counter() -> int:
    """Return the number of rows that were inserted, updated and deleted, by the statistics of PostgreSQL.

    No table is read. A change counts once its connection has reported it: after a second, or after ten if the
    connection rests. The number is only compared with an earlier one: a restart may begin from zero.
    """
    (count,) = binary.row(_COUNT, {"unshown": _UNSHOWN})
    return int(count)
