"""The contract of a probe, run over every file in ``probes/``."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import probes
from probes.base import InvalidParameters, Probe, UnknownProbe, checked_plan
from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig


@pytest.fixture(params=probes.names())
def name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def probe(name: str) -> type[Probe]:
    return probes.load(name)


@pytest.fixture
def assignment(name: str, probe: type[Probe], tmp_path: Path) -> Assignment:
    """A small run of the probe over directories of this host, the fewest that its roles need."""
    numbers = itertools.count(1)
    bindings = {
        role: [f"site{next(numbers)}" for _ in range(needs.minimum)] for role, needs in probe.roles.items()
    }
    resources = {}
    for resource in itertools.chain(*bindings.values()):
        (tmp_path / resource).mkdir()
        resources[resource] = ResourceConfig(resource, resource, str(tmp_path / resource))
    return Assignment(
        series=f"contract-{name}",
        slot=datetime(2026, 3, 1, tzinfo=UTC),
        reporter="home",
        probe=name,
        bindings=bindings,
        resources=resources,
        parameters=probe.trial,
        limit_seconds=60.0,
    )


def test_a_probe_describes_itself(probe: type[Probe]) -> None:
    assert probe.kind in {"grid", "application"}
    assert probe.version
    assert probe.summary.endswith(".")


def test_every_role_and_parameter_is_described(probe: type[Probe]) -> None:
    assert probe.roles
    for role in probe.roles.values():
        assert 1 <= role.minimum <= role.maximum
        assert role.description
    for name, parameter in probe.parameters.items():
        assert parameter.description
        assert parameter.checked(name, parameter.default) == parameter.default


def test_every_stage_has_a_category_and_a_method_and_the_last_cleans_up(probe: type[Probe]) -> None:
    names = [stage.name for stage in probe.stages]
    assert len(set(names)) == len(names)
    assert names[0] == "init"
    assert (names[-1], probe.stages[-1].category) == ("cleanup", "cleanup")
    for stage in probe.stages:
        assert stage.category in probes.CATEGORIES
        assert callable(getattr(probe, stage.name))


def test_unknown_parameters_and_roles_are_refused(probe: type[Probe], assignment: Assignment) -> None:
    with pytest.raises(InvalidParameters, match="'colour'"):
        checked_plan(probe, assignment.bindings, {"colour": 1})
    with pytest.raises(InvalidParameters, match="'nobody'"):
        checked_plan(probe, {**assignment.bindings, "nobody": ["site1"]}, {})
    with pytest.raises(InvalidParameters, match="needs"):
        checked_plan(probe, {}, {})


def test_a_run_passes_with_every_stage_timed_and_leaves_nothing_behind(
    probe: type[Probe], assignment: Assignment
) -> None:
    report = reporter.run(assignment)
    assert report.outcome == "passed", report.reason
    assert [(stage.name, stage.category) for stage in report.stages] == [
        (stage.name, stage.category) for stage in probe.stages
    ]
    names = [metric.name for metric in report.metrics]
    assert len(set(names)) == len(names)
    assert all(metric.unit for metric in report.metrics)
    assert [file for file in files(assignment) if not file.is_dir()] == []


@pytest.mark.parametrize("name", [name for name in probes.names() if name != "noop"])  # which touches none
def test_a_run_without_a_usable_scratch_fails_with_the_resource(assignment: Assignment) -> None:
    spoilt = max(assignment.resources)
    resources = {
        **assignment.resources,
        spoilt: replace(assignment.resources[spoilt], scratch="/proc/no-such-place"),
    }
    report = reporter.run(replace(assignment, resources=resources))
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("init", spoilt)
    assert "/proc/no-such-place" in report.reason
    assert [file for file in files(assignment) if not file.is_dir()] == []


def files(assignment: Assignment) -> list[Path]:
    return [file for resource in assignment.resources.values() for file in Path(resource.scratch).rglob("*")]


@pytest.mark.parametrize("name", ["", "base", "grid", "common", "os", "../gather", "gather.Probe", "kernels"])
def test_an_unknown_probe_is_not_imported(name: str) -> None:
    with pytest.raises(UnknownProbe, match=r"circle.* gather"):
        probes.load(name)
