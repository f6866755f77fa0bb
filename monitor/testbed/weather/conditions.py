"""The conditions at one step of the weather: how slow each mechanism of a grid is, and which fault it has."""

from __future__ import annotations

from dataclasses import dataclass, field

# The work of a site for a probe, and the stage of Gather that contains it.
MECHANISMS = {
    "login": "init",
    "disk": "stage_data",
    "compile": "build_executable",
    "inbound": "transfer_data",
    "queue": "queue_wait",
    "compute": "compute",
    "outbound": "transfer_results",
    "unlink": "cleanup",
}

# The kinds of faults of each mechanism. Those of "login", "disk", "inbound" and "unlink" affect every probe
# (also Circle); those of "compile", "queue", "compute" and "outbound" only Gather and PreCo.
FAULT_KINDS = {
    "login": (
        "refused",
        "hang",
        "denied",
    ),  # connection refused; accepts, sends nothing; permission denied
    "disk": ("full", "unwritable"),
    "inbound": ("reset", "stall", "corrupt"),  # cut in mid-transfer; no more bytes; a flipped bit
    "unlink": ("busy",),
    "compile": ("missing", "crash"),  # cc: command not found; internal compiler error
    "queue": ("rejected", "stuck"),  # batch system refuses the job; never starts it
    "compute": ("killed", "exit"),  # killed by a signal; non-zero exit status
    "outbound": ("reset", "stall"),
}


@dataclass(frozen=True)
class SiteFault:
    """A fault of one mechanism at one site. *site* is the index of the site, from 0."""

    site: int
    mechanism: str
    kind: str


@dataclass(frozen=True)
class Conditions:
    """The weather at step *index*, in grid seconds (before the time scale of a test-bed is applied).

    ``seconds[mechanism]`` is the time that the mechanism takes in a reference run of Gather, with 100 MB from
    each source and 500 MB of results. If several sites take part at once, ``slowest_site[mechanism]`` takes
    this time, and each other site takes the fraction ``others_fraction`` of this time.
    """

    index: int
    seconds: dict[str, float]
    slowest_site: dict[str, int]
    others_fraction: float
    fault: SiteFault | None = None
    application_seconds: dict[str, float] = field(default_factory=dict)  # the same for PreCo
