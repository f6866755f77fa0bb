"""Series with leaders: written after their leaders, removed before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from monitor.models import Run, Series
from monitor.models.run import State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.run_now import run_now
from tests.monitor.operations.gridfile.conftest import GridCommand

PAIR = """\
  z-probe:
    suite: main
    probe: login
    bindings: {target: [login-anl]}
    schedule: 0 * * * *
  a-job:
    suite: main
    probe: login
    bindings: {target: [login-anl]}
    leader: z-probe
    follows: after
    delay_seconds: 1800
"""


@pytest.fixture
def file(whole: str, operators: Group, tmp_path: Path) -> Path:
    """Write a file with a pair: a job half an hour after its probe."""
    (tmp_path / "grid.yaml").write_text(whole[: whole.index("  gather-main:")] + PAIR, encoding="utf-8")
    return tmp_path / "grid.yaml"


def without_series(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("series:")], encoding="utf-8")


def test_a_series_follows_one_that_comes_later_by_name(grid: GridCommand, file: Path) -> None:
    assert grid("apply", file)[0] == 0
    job = Series.objects.get(name="a-job")
    assert job.leader is not None
    assert (job.leader.name, job.follows, job.delay_seconds) == ("z-probe", "after", 1800)
    assert grid("plan", "--exit-code", file)[0] == 0


def test_a_group_survives_export_and_apply(grid: GridCommand, file: Path, tmp_path: Path) -> None:
    grid("apply", file)
    grid("export", tmp_path / "out.yaml")
    assert grid("plan", "--prune", "--exit-code", tmp_path / "out.yaml")[0] == 0


def test_a_follower_may_become_the_leader(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    swapped = PAIR.replace("z-probe", "x").replace("a-job", "z-probe").replace("x", "a-job")
    file.write_text(file.read_text(encoding="utf-8").replace(PAIR, swapped), encoding="utf-8")
    assert grid("apply", file)[1].endswith("0 to add, 2 to change, 0 to remove.\n")
    assert [series.leader and series.leader.name for series in Series.objects.order_by("name")] == [
        None,
        "a-job",
    ]


def test_a_group_is_pruned_together(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    without_series(file)
    assert grid("apply", "--prune", file)[0] == 0
    assert not Series.objects.exists()


def test_the_leader_of_a_series_with_runs_is_kept(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    run = run_now(Series.objects.get(name="a-job"), who="ada")
    transitions.move(Run.objects.all(), [run.pk], State.PASSED, cause="test")
    without_series(file)
    grid("apply", "--prune", file)
    assert list(Series.objects.values_list("name", "enabled")) == [("a-job", False), ("z-probe", False)]
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0
