"""The mesh of results names the part at fault, and no innocent one."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from monitor.analysis.attribution.culprits import (
    LEAST_PROBABILITY,
    GridPart,
    MeshResult,
    PartKind,
    culprits,
    posterior,
    suspects_the_monitor,
)

SITES = [f"site{number}" for number in range(12)]
NOISE = 0.05


def mesh(fault: GridPart | None, numbers: random.Random, *, rounds: int = 12) -> list[MeshResult]:
    """Return the results of *rounds* of a mesh of 12 sites; in each, a random reporter measures each edge.

    A lossy edge fails in 50 % to 100 % of its results, every other faulty part always.
    """
    results = []
    loss = numbers.uniform(0.5, 1.0) if fault and fault.kind is PartKind.EDGE else 1.0
    edges = [(a, b) for a in SITES for b in SITES if a != b]
    for number, (source, destination) in enumerate(edges * rounds):
        parts = frozenset(
            {
                GridPart(PartKind.SOURCE, source),
                GridPart(PartKind.DESTINATION, destination),
                GridPart(PartKind.EDGE, f"{source}>{destination}"),
                GridPart(PartKind.REPORTER, numbers.choice(SITES)),
            }
        )
        fails = numbers.random() < NOISE or (fault in parts and numbers.random() < loss)
        results.append(MeshResult(str(number), not fails, parts))
    return results


def drawn_fault(numbers: random.Random) -> GridPart:
    kind = numbers.choice([PartKind.SOURCE, PartKind.DESTINATION, PartKind.EDGE, PartKind.REPORTER])
    name = ">".join(numbers.sample(SITES, 2)) if kind is PartKind.EDGE else numbers.choice(SITES)
    return GridPart(kind, name)


@pytest.mark.parametrize("cases", [100, pytest.param(500, marks=pytest.mark.nightly)])
def test_the_culprit_of_a_mesh_is_named_and_no_innocent_part(cases: int) -> None:
    numbers = random.Random(17)
    named, innocent = Counter[PartKind](), 0
    faults = [drawn_fault(numbers) for _ in range(cases)]
    for fault in faults:
        verdicts = [culprit.part for culprit in culprits(mesh(fault, numbers))]
        named[fault.kind] += fault in verdicts
        innocent += any(part != fault for part in verdicts)
    assert sum(named.values()) >= 0.95 * cases, named
    assert innocent <= 0.01 * cases


def test_noise_alone_has_no_culprit() -> None:
    numbers = random.Random(4)
    assert sum(bool(culprits(mesh(None, numbers))) for _ in range(50)) <= 1


def test_two_culprits_are_both_named_with_their_runs() -> None:
    numbers = random.Random(5)
    dead = GridPart(PartKind.SOURCE, "site3"), GridPart(PartKind.DESTINATION, "site8")
    results = [
        MeshResult(each.run, each.has_passed and not each.parts.intersection(dead), each.parts)
        for each in mesh(None, numbers)
    ]
    verdicts = culprits(results)
    assert {culprit.part for culprit in verdicts} == set(dead)
    by_run = {each.run: each for each in results}
    for culprit in verdicts:
        assert culprit.probability >= LEAST_PROBABILITY
        assert culprit.failed == len(culprit.runs) <= culprit.total
        assert all(culprit.part in by_run[run].parts for run in culprit.runs)
        assert not any(by_run[run].has_passed for run in culprit.runs)


def test_parts_that_always_take_part_together_cannot_be_told_apart() -> None:
    pair = frozenset({GridPart(PartKind.SOURCE, "a"), GridPart(PartKind.REPORTER, "a")})
    other = frozenset({GridPart(PartKind.SOURCE, "b"), GridPart(PartKind.REPORTER, "b")})
    results = [MeshResult(f"a{n}", False, pair) for n in range(10)]
    results += [MeshResult(f"b{n}", True, other) for n in range(10)]
    assert culprits(results) == []
    probabilities = posterior(results)
    assert probabilities[GridPart(PartKind.SOURCE, "a")] == pytest.approx(
        probabilities[GridPart(PartKind.REPORTER, "a")]
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_failures_prove_nothing(count: int) -> None:
    part = frozenset({GridPart(PartKind.SOURCE, "a")})
    assert culprits([MeshResult(str(n), False, part) for n in range(count)]) == []


def test_probabilities_add_up_to_one() -> None:
    assert sum(posterior(mesh(None, random.Random(6))).values()) == pytest.approx(1)
    assert posterior([]) == {None: 1.0}


@pytest.mark.parametrize(
    ("changed", "sites", "share", "suspected"),
    [
        (0, 12, 0.5, False),
        (5, 12, 0.5, False),
        (6, 12, 0.5, True),
        (2, 3, 0.5, False),  # two sites may well fail together
        (3, 3, 1.0, True),
        (0, 0, 0.5, False),
    ],
)
def test_many_sites_that_change_at_once_throw_suspicion_on_the_monitor(
    changed: int, sites: int, share: float, suspected: bool
) -> None:
    assert suspects_the_monitor(SITES[:changed], SITES[:sites], share=share) is suspected
