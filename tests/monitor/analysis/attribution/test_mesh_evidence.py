"""Runs become evidence about exactly the parts of the grid that they reached."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

import probes
from monitor.analysis.attribution.culprits import GridPart, MeshResult, PartKind, culprits
from monitor.analysis.attribution.mesh_evidence import Link, MeshRun, MeshSeries, mesh_results, mesh_series

SITES = [f"site{number}" for number in range(12)]


def series(probe: str, roles: Mapping[str, Sequence[str]], reporter: str = "home") -> MeshSeries:
    stages = [(stage.name, stage.category) for stage in probes.load(probe).stages]
    return mesh_series(reporter, stages, roles)


def gather(*sources: str, compute: str, destination: str, reporter: str = "home") -> MeshSeries:
    roles = {"sources": sources, "compute": [compute], "destination": [destination]}
    return series("gather", roles, reporter)


def named(results: Sequence[MeshResult]) -> list[tuple[bool, set[str]]]:
    """Return each result with its parts, as ``kind name``, without the reporter."""
    return [
        (
            each.has_passed,
            {f"{kind} {name}" for kind, name in each.parts if kind is not PartKind.REPORTER},
        )
        for each in results
    ]


TWO_SOURCES = gather("a", "b", compute="c", destination="d")
INPUT_A = {"source a", "destination c", "edge a>c", "site c"}
INPUT_B = {"source b", "destination c", "edge b>c", "site c"}
RESULT = {"source c", "destination d", "edge c>d", "site c"}
COMPUTED = {"compute c", "site c"}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (MeshRun("1"), [(True, p) for p in (INPUT_A, INPUT_B, COMPUTED, COMPUTED, RESULT)]),
        (MeshRun("1", "init", "a", has_passed=False), [(False, {"source a"})]),
        (MeshRun("1", "init", "c", has_passed=False), [(False, {"site c"})]),
        (
            MeshRun("1", "init", "", has_passed=False),
            [(False, {"source a", "source b", "site c", "destination d"})],
        ),
        (MeshRun("1", "transfer_data", "a", has_passed=False), [(False, INPUT_A)]),
        (MeshRun("1", "transfer_data", "c", has_passed=False), [(False, INPUT_A | INPUT_B)]),
        (
            MeshRun("1", "queue_wait", "c", has_passed=False),
            [(True, INPUT_A), (True, INPUT_B), (False, COMPUTED)],
        ),
        (
            MeshRun("1", "transfer_results", "d", has_passed=False),
            [(True, INPUT_A), (True, INPUT_B), (True, COMPUTED), (True, COMPUTED), (False, RESULT)],
        ),
        (MeshRun("1", "a_stage_of_another_version", "a", has_passed=False), []),
    ],
    ids=lambda value: f"{value.stage or 'passed'} at {value.site}" if isinstance(value, MeshRun) else "",
)
def test_a_run_is_evidence_about_the_steps_it_reached(
    run: MeshRun, expected: list[tuple[bool, set[str]]]
) -> None:
    assert named(mesh_results([(TWO_SOURCES, run)])) == expected


def test_a_ring_uses_its_links_in_turn() -> None:
    ring = series("circle", {"ring": ["a", "b", "c"]})
    assert ring.links_by_stage() == {"transfer_ring": [Link("a", "b"), Link("b", "c"), Link("c", "a")]}
    (failed,) = mesh_results([(ring, MeshRun("1", "transfer_ring", "b", has_passed=False))])
    assert {part.name for part in failed.parts if part.kind is PartKind.EDGE} == {"a>b", "b>c"}


def test_no_link_leads_from_a_site_to_itself() -> None:
    assert gather("a", compute="a", destination="a").links_by_stage() == {
        "transfer_data": [],
        "transfer_results": [],
    }


def test_a_probe_of_one_site_is_evidence_about_its_computing() -> None:
    stream = series("stream", {"target": ["a"]})
    assert named(mesh_results([(stream, MeshRun("1"))])) == [(True, {"compute a"})] * 2


FAULTS = [
    GridPart(PartKind.SOURCE, "site3"),
    GridPart(PartKind.DESTINATION, "site5"),
    GridPart(PartKind.COMPUTE, "site7"),
    GridPart(PartKind.SITE, "site2"),
    GridPart(PartKind.REPORTER, "agent1"),
]


def grid_of_series() -> list[MeshSeries]:
    """Return a Gather from each site to each other one, run by one of three reporters in turn."""
    numbers = random.Random(1)
    every = []
    for number, (source, compute) in enumerate((a, b) for a in SITES for b in SITES if a != b):
        destination = numbers.choice([site for site in SITES if site not in (source, compute)])
        reporter = f"agent{number % 3}"
        every.append(gather(source, compute=compute, destination=destination, reporter=reporter))
    return every


def outcome(mesh: MeshSeries, fault: GridPart, run: str, numbers: random.Random) -> MeshRun:
    """Return a run of *mesh* that fails where *fault* is met first, or at random in one of twenty cases."""
    source, compute, destination = (sites[0] for sites in mesh.roles)
    if numbers.random() < 0.05:
        return MeshRun(run, numbers.choice(mesh.stages)[0], numbers.choice([*mesh.sites]), has_passed=False)
    steps = {
        PartKind.SOURCE: [("transfer_data", source), ("transfer_results", compute)],
        PartKind.DESTINATION: [("transfer_data", compute), ("transfer_results", destination)],
        PartKind.COMPUTE: [("queue_wait", compute)],
        PartKind.SITE: [("init", source), ("init", compute), ("init", destination)],
        PartKind.REPORTER: [("init", "")] if mesh.reporter == fault.name else [],
    }[fault.kind]
    for stage, site in steps:
        if site in (fault.name, ""):
            return MeshRun(run, stage, site, has_passed=False)
    return MeshRun(run)


@pytest.mark.parametrize("cases", [10, pytest.param(100, marks=pytest.mark.nightly)])
def test_the_part_at_fault_is_named_by_runs_of_gather(cases: int) -> None:
    numbers = random.Random(2)
    named_faults, innocent = Counter[GridPart](), 0
    for fault in FAULTS * cases:
        runs = [(each, outcome(each, fault, f"{n}", numbers)) for n, each in enumerate(grid_of_series() * 3)]
        verdicts = [culprit.part for culprit in culprits(mesh_results(runs))]
        named_faults[fault] += fault in verdicts
        innocent += any(part != fault for part in verdicts)
    assert all(named_faults[fault] >= 0.95 * cases for fault in FAULTS), named_faults
    assert innocent <= 0.01 * cases * len(FAULTS)
