"""The cases of long tables that run by day: others each day, and all of them by night.

``GRIDCAST_ACCESS_SEED`` repeats a draw: the number of the day, which a test that fails says.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial

from tests.by_night import mostly_by_night, some_by_day

SEED = int(os.environ.get("GRIDCAST_ACCESS_SEED") or datetime.now(UTC).toordinal())
DRAW = f"GRIDCAST_ACCESS_SEED={SEED} repeats the draw"

drawn = partial(mostly_by_night, draw=SEED)
sampled = partial(some_by_day, draw=SEED)
