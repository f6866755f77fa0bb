"""Decide by a mesh of results which part of the grid is at fault. Pure.

Each result names the parts that took part in it: a source, a destination, the edge between both, a compute
site, a reporter. One culprit at a time is sought: under the hypothesis that a part is at fault, the results
that used it fail at a rate of their own, and all other results at the rate of unrelated noise. Both rates are
unknown and integrated out with Beta priors (a Beta-Bernoulli model; for the same idea with the loss rates of
network links see Castro et al., "Network Tomography: Recent Developments", Statistical Science 19(3), 2004).
The hypothesis with the highest posterior probability is the verdict if it is probable enough. The results
that it explains are then set aside, and another culprit is sought among the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, lgamma, log
from typing import NamedTuple


class PartKind(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"
    EDGE = "edge"
    COMPUTE = "compute"
    SITE = "site"  # in every role
    REPORTER = "reporter"


class GridPart(NamedTuple):
    """A part of the grid that may be at fault; an edge is named ``source>destination``."""

    kind: PartKind
    name: str


@dataclass(frozen=True)
class MeshResult:
    """One result: whether it passed, and the parts that took part in it; *run* identifies it."""

    run: str
    has_passed: bool
    parts: frozenset[GridPart]


@dataclass(frozen=True)
class Culprit:
    """A part at fault.

    Attributes:
        probability: the posterior probability of this hypothesis.
        failed, total: of the results that used the part.
        runs: the failed results that it rests on.
    """

    part: GridPart
    probability: float
    failed: int
    total: int
    runs: tuple[str, ...]


class _Beta(NamedTuple):
    """A Beta distribution of a failure rate."""

    failed: float
    passed: float

    def log_marginal(self, failed: int, total: int) -> float:
        """Return the logarithm of the probability of this sequence of failures, the rate integrated out."""
        passed = total - failed
        return _log_beta(self.failed + failed, self.passed + passed) - _log_beta(self.failed, self.passed)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


_NOISE = _Beta(1, 19)  # a mean of 5 %
# A dead part fails nearly always; an edge may only lose some packets.
_RATES = {kind: _Beta(9, 1) for kind in PartKind} | {PartKind.EDGE: _Beta(2, 1)}
# How often a part of each kind is at fault, compared with none at all. There are far more edges than sites.
_ODDS = {
    PartKind.SOURCE: 0.02,
    PartKind.DESTINATION: 0.02,
    PartKind.COMPUTE: 0.02,
    PartKind.SITE: 0.02,
    PartKind.REPORTER: 0.02,
    PartKind.EDGE: 0.002,
}
LEAST_PROBABILITY = 0.9
_EVIDENT = 10.0  # how much more probable than no culprit
_LEAST_FAILED = 3  # fewer failed results prove nothing
_MOST_CULPRITS = 10


def culprits(results: Collection[MeshResult]) -> list[Culprit]:
    """Return the parts at fault, the most evident first; none if the failures look like noise.

    Two parts that took part in the same results, such as a reporter that alone measures a source, cannot be
    told apart: neither becomes a culprit, because neither is probable enough.
    """
    verdicts: list[Culprit] = []
    remaining = list(results)
    while len(verdicts) < _MOST_CULPRITS:
        culprit = _most_probable(remaining)
        if culprit is None:
            break
        verdicts.append(culprit)
        remaining = [result for result in remaining if culprit.part not in result.parts]
    return verdicts


def posterior(results: Collection[MeshResult]) -> Mapping[GridPart | None, float]:
    """Return the probability of each single culprit, and of none (the key None)."""
    total, failed = len(results), sum(not result.has_passed for result in results)
    logs: dict[GridPart | None, float] = {None: _NOISE.log_marginal(failed, total)}
    counts = _counts(results)
    for part, (part_failed, part_total) in counts.items():
        if part_failed < _LEAST_FAILED:
            continue
        of_part = _RATES[part.kind].log_marginal(part_failed, part_total)
        of_others = _NOISE.log_marginal(failed - part_failed, total - part_total)
        logs[part] = of_part + of_others + log(_ODDS[part.kind])
    highest = max(logs.values())
    weights = {part: exp(value - highest) for part, value in logs.items()}
    whole = sum(weights.values())
    return {part: weight / whole for part, weight in weights.items()}


def _most_probable(results: Sequence[MeshResult]) -> Culprit | None:
    """Return the most probable part at fault, if it is probable enough among the parts that rival it.

    A part that remains evident without the results of the most probable one is a further culprit, not a
    rival: both may be at fault.
    """
    probabilities = posterior(results)
    part = max(probabilities, key=probabilities.__getitem__)
    if part is None:
        return None
    others = posterior([result for result in results if part not in result.parts])
    further = {
        other
        for other, probability in others.items()
        if other is not None and probability >= _EVIDENT * others[None]
    }
    rivals = sum(value for other, value in probabilities.items() if other not in further and other != part)
    probability = probabilities[part] / (probabilities[part] + rivals)
    if probability < LEAST_PROBABILITY:
        return None
    failed, total = _counts(results)[part]
    runs = tuple(each.run for each in results if not each.has_passed and part in each.parts)
    return Culprit(part, probability, failed, total, runs)


def _counts(results: Iterable[MeshResult]) -> dict[GridPart, tuple[int, int]]:
    """Return by part how many results that used it failed, and how many there are."""
    failed: dict[GridPart, int] = defaultdict(int)
    total: dict[GridPart, int] = defaultdict(int)
    for result in results:
        for part in result.parts:
            total[part] += 1
            failed[part] += not result.has_passed
    return {part: (failed[part], count) for part, count in total.items()}


def suspects_the_monitor(changed: Collection[str], sites: Collection[str], *, share: float) -> bool:
    """Return whether at least *share* of all *sites*, and at least three, *changed* state within a window.

    Many sites do not fail together: more likely the monitor, or the network around it, does.
    """
    count = len(set(changed) & set(sites))
    return count >= 3 and count >= share * len(set(sites))
