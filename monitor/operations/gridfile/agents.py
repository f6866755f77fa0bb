"""Check which series the agents of sites run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from monitor.core.yamlfile.problems import Fault, Path
from monitor.models.reporter import MAX_AGENT_SERIES
from monitor.models.series import REPORTED_PROBE, Follows
from monitor.operations.gridfile.definition import ResourceDefinition, SeriesDefinition

MAX_AGENT_SECONDS = 7 * 86_400  # agents refuse longer times
_BOUNDED = ("limit_seconds", "delay_seconds", "jitter_seconds", "exclusive_wait_seconds")


def faults(
    expanded: Mapping[str, tuple[str, SeriesDefinition]],
    resources: Mapping[str, ResourceDefinition],
    reporters: Mapping[str, str | None],
) -> Iterator[Fault]:
    """Yield the faults of series that agents run; of several at the same path of a macro, only the first.

    *expanded* are pairs (name of the entry in the file, series) by name of the series; *reporters* are the
    sites of reporters by name, None for Celery workers.
    """
    remote = [pair for pair in expanded.values() if reporters.get(pair[1].reporter) is not None]
    first: dict[Path, str] = {}
    for template, series in remote:
        if series.probe == REPORTED_PROBE:
            message = f"{series.reporter} is an agent; expected none: programs outside of gridcast report it"
            first.setdefault(("series", template, "reporter"), message)
            continue
        for key in _BOUNDED:
            if getattr(series, key) > MAX_AGENT_SECONDS:
                message = f"expected at most {MAX_AGENT_SECONDS:,} for a series of an agent"
                first.setdefault(("series", template, key), message)
        if series.name.startswith("-"):
            first.setdefault(("series", template), "expected another first character: an agent runs it")
        if not _is_at_site(series, reporters[series.reporter], resources):
            message = (
                f"reporter {series.reporter} runs at site {reporters[series.reporter]}; expected a resource"
            )
            path = ("series", template, "reporter")
            first.setdefault(path, f"{message} of this site among the bindings")
        leader = expanded[series.leader][1] if series.leader and series.leader in expanded else None
        if leader is not None and series.follows == Follows.AFTER and leader.reporter != series.reporter:
            message = f"reporter {leader.reporter} runs it; expected a series of reporter {series.reporter}"
            path = ("series", template, "leader")
            first.setdefault(path, f"{message}: an agent waits only for its own runs")
    yield from first.items()
    counts = Counter(series.reporter for _, series in remote if series.enabled)
    for reporter, count in counts.items():
        if count > MAX_AGENT_SERIES:
            message = f"it runs {count:,} series; expected at most {MAX_AGENT_SERIES:,} for an agent"
            yield ("reporters", reporter), message


def _is_at_site(
    series: SeriesDefinition, site: str | None, resources: Mapping[str, ResourceDefinition]
) -> bool:
    """Return whether *series* binds a resource of *site*; unknown resources have a fault of their own."""
    bound = [name for names in series.bindings.values() for name in names]
    return any(name not in resources or resources[name].site == site for name in bound)
