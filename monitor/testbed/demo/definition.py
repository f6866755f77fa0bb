"""What the demo watches: the series that run over the local grid, its files scaled down."""

from __future__ import annotations

from monitor.services.define import SeriesDefinition

FILE_BYTES = 1_000_000
RESULT_BYTES = 5_000_000
LIMIT_SECONDS = 90.0
SITES = ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc")


def series(*, scheduled: bool) -> list[SeriesDefinition]:
    """Gather from five sources to NCSA, results to SDSC, and Circle round all seven; every minute."""
    schedule = "* * * * *"
    return [
        SeriesDefinition(
            name="gather-main",
            probe="gather",
            bindings={
                "sources": ["anl", "iu", "ornl", "tacc", "purdue"],
                "compute": ["ncsa"],
                "destination": ["sdsc"],
            },
            parameters={"file_bytes": FILE_BYTES, "result_bytes": RESULT_BYTES},
            schedule=schedule,
            enabled=scheduled,
            limit_seconds=LIMIT_SECONDS,
        ),
        SeriesDefinition(
            name="circle-main",
            probe="circle",
            bindings={"ring": ["iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl"]},
            parameters={"file_bytes": FILE_BYTES},
            schedule=schedule,
            enabled=scheduled,
            limit_seconds=LIMIT_SECONDS,
        ),
    ]
