"""External-memory BFS: search a graph that lies on disk, as graph analysis does where memory is too small.

The kernel generates a graph in the scratch directory and searches it with the algorithm of Munagala and
Ranade (I/O-complexity of graph algorithms, SODA 1999): adjacency lists are read a block at a time, sorted
neighbours are written and merged in larger pieces. The mix tells media apart: the search gains a few times
between a disk and flash, its random reads more. Levels and vertices are compared with the known answer.
``kernels/em_bfs.c`` explains the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.base import InvalidParameters, Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, kernels, rates, tracing
from probes.common.fullness import scratch_fullness
from probes.grid import Grid

VERTEX_BYTES = 8
_BUILD_BYTES = 1_000_000
_MOST_SECONDS = 864_000.0  # the time limit of the run ends the kernel earlier
_PHASES = {
    "generate": ("generate",),
    "traverse": ("adjacency", "sort_write", "sort_read", "traverse"),
}


@dataclass(frozen=True)
class Tally:
    """I/O operations, the bytes that they moved, and their seconds; of a search: vertices and levels."""

    operations: int
    size_bytes: int
    seconds: float


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Searches a graph on disk breadth-first, and checks the answer."
    roles = {"target": Role(1, 1, "has the graph in its scratch directory, and searches it")}
    parameters = {
        "dimension": Parameter(14, "the graph has 2 ** dimension vertices with so many neighbours", 2, 30),
        "record_bytes": Parameter(4096, "size of a vertex with its neighbours, bytes", 16, 2**30),
        "memory_bytes": Parameter(262_144, "memory of a sorted run, bytes", 4096, 2**40),
        "seed": Parameter(1, "number that chooses the names of the vertices", 0, 2**31 - 1),
        "trace": tracing.TRACE,
    }
    trial = {"dimension": 8}
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("generate", "compute"),
        Stage("traverse", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.dimension = plan.integer("dimension")
        self.record_bytes = plan.integer("record_bytes")
        self.memory_bytes = plan.integer("memory_bytes")
        self.seed = plan.integer("seed")
        self.is_traced = bool(plan.parameters["trace"])
        if self.record_bytes < VERTEX_BYTES * self.dimension or self.record_bytes % VERTEX_BYTES:
            raise InvalidParameters(
                f"record_bytes: expected a multiple of {VERTEX_BYTES}, at least "
                f"{VERTEX_BYTES * self.dimension} for {self.dimension} neighbours; got {self.record_bytes}"
            )

    def init(self) -> list[Measurement]:
        needs = checks.Needs(self._needed_bytes() + _BUILD_BYTES, ["cc"])
        checks.check_resources(self.grid, {self.target: needs})
        return scratch_fullness(self.grid, self.target)

    def build_executable(self) -> None:
        self.executable = kernels.build_kernel(
            self.grid, self.target, "em_bfs", libraries=["-lm"], headers=["checked"]
        )
        self.tracer = tracing.build_tracer(self.grid, self.target) if self.is_traced else ""

    def generate(self) -> list[Measurement]:
        graph = self._run("generate")["generate"]
        return [
            Measurement("generate.seconds", graph.seconds, "seconds"),
            *rates.bytes_per_second("generate.bytes_per_second", graph.size_bytes, graph.seconds),
        ]

    def traverse(self) -> list[Measurement]:
        metrics = search_metrics(self._run("traverse"))
        return metrics + (tracing.traced_metrics(self.grid, self.target) if self.is_traced else [])

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _needed_bytes(self) -> int:
        """Return the size of the graph, and of twice the neighbours of all vertices: no level has more."""
        return (self.record_bytes + 2 * VERTEX_BYTES * self.dimension) * (1 << self.dimension)

    def _run(self, command: str) -> dict[str, Tally]:
        sizes = (self.dimension, self.record_bytes, self.seed, self.memory_bytes)
        argv = [self.executable, command, self.grid.scratch(self.target), *map(str, sizes)]
        if self.is_traced:
            argv = tracing.traced(self.grid, self.target, self.tracer, argv)
        text = self.grid.shell(self.target).check(
            argv,
            timeout_seconds=_MOST_SECONDS,
            doing=f"{command} the graph",
        )
        is_direct, tallies = parse_tallies(text, _PHASES[command], self.target)
        if not is_direct:
            self.grid.log(f"no direct I/O at {self.target}: {command} may use the page cache", "warning")
        return tallies


def parse_tallies(text: str, names: tuple[str, ...], resource: str) -> tuple[bool, dict[str, Tally]]:
    """Return whether the I/O of the kernel was direct, and its tallies, exactly those called *names*.

    Raises:
        ProbeFailed: the output is unreadable.
    """
    is_direct, tallies = True, {}
    try:
        for name, *numbers in (line.split() for line in text.splitlines()):
            if name == "direct":
                is_direct = numbers == ["1"]
            else:
                operations, size, seconds = numbers
                tallies[name] = Tally(int(operations), int(size), float(seconds))
    except ValueError:
        tallies = {}
    if tuple(tallies) != names:
        raise ProbeFailed(f"unreadable output of em_bfs at {resource}: {text[-200:]!r}", resource=resource)
    return is_direct, tallies


def search_metrics(tallies: dict[str, Tally]) -> list[Measurement]:
    """Return the times of a search: random reads, sorting, the rest; and their rates."""
    adjacency, search = tallies["adjacency"], tallies["traverse"]
    sorts = [tallies["sort_write"], tallies["sort_read"]]
    sort_seconds = sum(sort.seconds for sort in sorts)
    metrics = [
        Measurement("traverse.seconds", search.seconds, "seconds"),
        Measurement("adjacency.seconds", adjacency.seconds, "seconds"),
        Measurement("sort.seconds", sort_seconds, "seconds"),
        Measurement("other.seconds", max(search.seconds - adjacency.seconds - sort_seconds, 0.0), "seconds"),
        *rates.bytes_per_second(
            "sort.bytes_per_second", sum(sort.size_bytes for sort in sorts), sort_seconds
        ),
    ]
    for name, tally in (("adjacency", adjacency), ("traverse", search)):
        if tally.seconds > 0:
            unit = "operations_per_second" if name == "adjacency" else "vertices_per_second"
            metrics.append(Measurement(f"{name}.{unit}", tally.operations / tally.seconds, unit))
    return metrics
