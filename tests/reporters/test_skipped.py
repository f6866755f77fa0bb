from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import probes
from reporters.config import ResourceConfig
from reporters.report import from_json, to_json
from reporters.run import identity, run
from reporters.skipped import skipped
from tests.reporters.remote.policy.assignments import NOW, assignment


def test_a_skipped_run_measures_what_the_run_would_have_measured(tmp_path: Path) -> None:
    """So both belong to the same segment of the series."""
    at_home = ResourceConfig("login", "here", str(tmp_path))
    task = assignment(at_home, probe="login", parameters={"logins": 2})
    passed, not_run = run(task), skipped(task, "policy: the probe login is forbidden", now=lambda: NOW)
    assert passed.outcome == "passed"
    assert (not_run.outcome, not_run.reason) == ("skipped", "policy: the probe login is forbidden")
    for name in ("run", "series", "slot", "reporter", "probe", "parameters", "bindings", "environment"):
        assert getattr(not_run, name) == getattr(passed, name), name
    assert (not_run.started_at, not_run.seconds) == (NOW, 0.0)
    assert from_json(to_json(not_run)) == not_run


def test_defaults_are_filled_in() -> None:
    task = assignment(probe="disk")
    assert skipped(task, "x").parameters["tool"] == "auto"
    assert skipped(task, "x").probe == identity("disk", probes.load("disk"))


def test_an_unknown_probe_and_invalid_parameters_are_skipped_too() -> None:
    task = assignment(probe="disk", parameters={"tool": "rm"})
    assert skipped(task, "x").parameters == {"tool": "rm"}
    unknown = skipped(replace(task, probe="gone"), "x")
    assert (unknown.probe.name, unknown.probe.sha256) == ("gone", "")
    assert from_json(to_json(unknown)) == unknown
