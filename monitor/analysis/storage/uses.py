"""What storage is used for, and which metrics of which probes measure it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Use:
    """One use of storage. *part_rate* is the key of the rate of one part in a grid file."""

    name: str
    title: str
    unit: str
    part_rate: str = ""


USES = (
    Use("sequential_read", "Large reads", "bytes_per_second", "read_bytes_per_second"),
    Use("sequential_write", "Large writes", "bytes_per_second", "write_bytes_per_second"),
    Use("random_read", "Small random reads", "operations_per_second", "read_operations_per_second"),
    Use("random_write", "Small random writes", "operations_per_second", "write_operations_per_second"),
    Use("metadata", "Creating files", "operations_per_second"),
    Use("lookup", "Database look-ups", "operations_per_second"),
    Use("scan", "Database scans", "bytes_per_second"),
    Use("search", "Graph search", "vertices_per_second"),
)
USE_OF = {use.name: use for use in USES}


@dataclass(frozen=True)
class MeasuredUse:
    """The metric that measures a use; its value times *factor* has the unit of the use."""

    use: str
    metric: str
    factor: float = 1.0
    settings: Mapping[str, str] | None = None


Parameters = Mapping[str, Any]
_CELL = re.compile(r"sweep\.((?:[a-z_]+=[^,=]+,?)+)\.bytes_per_second")


def measured_uses(
    probe: str, parameters: Parameters, medians: Callable[[], Mapping[str, float]]
) -> Sequence[MeasuredUse]:
    """Return what a series of *probe* measures; *medians* by metric choose between settings of a sweep."""
    if probe == "storage_sweep":
        return _of_sweep(medians())
    return _OF_PROBE[probe](parameters) if probe in _OF_PROBE else ()


def probes() -> list[str]:
    """Return the probes whose series measure storage areas, those with the best evidence first."""
    return [
        "storage_sweep",
        "disk",
        "lookups",
        "em_bfs",
        *(name for name in _OF_PROBE if "import" in name),
        "streams",
    ]


def _of_disk(_parameters: Parameters) -> list[MeasuredUse]:
    return [
        MeasuredUse("sequential_read", "sequential_read.bytes_per_second"),
        MeasuredUse("sequential_write", "sequential_write.bytes_per_second"),
        MeasuredUse("random_read", "random_read.operations_per_second"),
        MeasuredUse("random_write", "random_write.operations_per_second"),
        MeasuredUse("metadata", "metadata.create.operations_per_second"),
    ]


def _of_lookups(_parameters: Parameters) -> list[MeasuredUse]:
    return [
        MeasuredUse("lookup", "lookup.operations_per_second"),
        MeasuredUse("scan", "scan.bytes_per_second"),
    ]


def _of_search(_parameters: Parameters) -> list[MeasuredUse]:
    return [MeasuredUse("search", "traverse.vertices_per_second")]


def _by_direction(*, is_random: bool) -> list[MeasuredUse]:
    pattern = "random" if is_random else "sequential"
    unit = "operations_per_second" if is_random else "bytes_per_second"
    return [MeasuredUse(f"{pattern}_{way}", f"{way}.{unit}") for way in ("read", "write")]


def _of_fio(parameters: Parameters) -> list[MeasuredUse]:
    return _by_direction(is_random=str(parameters.get("pattern", "")).startswith("rand"))


def _of_ior(parameters: Parameters) -> list[MeasuredUse]:
    return _by_direction(is_random=parameters.get("ordering") == "random")


def _of_elbencho(parameters: Parameters) -> list[MeasuredUse]:
    created = MeasuredUse("metadata", "write.entries_per_second")
    return [*_by_direction(is_random=str(parameters.get("random")) in ("true", "1")), created]


def _of_mdtest(_parameters: Parameters) -> list[MeasuredUse]:
    return [MeasuredUse("metadata", "file_creation.operations_per_second")]


def _of_io500(parameters: Parameters) -> list[MeasuredUse]:
    phases = {
        "ior-easy-read": MeasuredUse("sequential_read", "bytes_per_second"),
        "ior-easy-write": MeasuredUse("sequential_write", "bytes_per_second"),
        "mdtest-easy-write": MeasuredUse("metadata", "operations_per_second"),
    }
    phase = str(parameters.get("phase"))
    return [phases[phase]] if phase in phases else []


_OF_PROBE: Mapping[str, Callable[[Parameters], Sequence[MeasuredUse]]] = {
    "disk": _of_disk,
    "lookups": _of_lookups,
    "em_bfs": _of_search,
    "import-fio": _of_fio,
    "import-ior": _of_ior,
    "import-elbencho": _of_elbencho,
    "import-mdtest": _of_mdtest,
    "import-io500": _of_io500,
}


def _of_sweep(medians: Mapping[str, float]) -> list[MeasuredUse]:
    """Return the best setting of a sweep for each use: large requests by bytes, small ones by operations."""
    cells = {
        metric: dict(part.partition("=")[::2] for part in found[1].split(","))
        for metric in medians
        if (found := _CELL.fullmatch(metric))
    }
    uses = []
    for direction in ("read", "write"):
        for pattern in ("sequential", "random"):
            candidates = {
                metric: levels
                for metric, levels in cells.items()
                if levels.get("direction") == direction and _pattern(levels) == pattern
            }
            if best := _best(candidates, medians, is_random=pattern == "random"):
                size = float(cells[best]["request_bytes"])
                factor = 1.0 / size if pattern == "random" else 1.0
                uses.append(MeasuredUse(f"{pattern}_{direction}", best, factor, cells[best]))
    return uses


def _pattern(levels: Mapping[str, str]) -> str:
    return "sequential" if levels.get("pattern") == "sequential" else "random"


def _best(
    candidates: Mapping[str, Mapping[str, str]], medians: Mapping[str, float], *, is_random: bool
) -> str | None:
    """Return the fastest of *candidates*; of random ones, with the smallest request."""
    sized = {metric: float(levels.get("request_bytes", "nan")) for metric, levels in candidates.items()}
    sized = {metric: size for metric, size in sized.items() if size > 0}
    if is_random and sized:
        smallest = min(sized.values())
        sized = {metric: size for metric, size in sized.items() if size == smallest}
    return max(sized, key=lambda metric: medians[metric], default=None)
