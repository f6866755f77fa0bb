"""The folder of profiles is the registry; an inconsistent profile is refused."""

import sys
from dataclasses import replace

import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.conditions import FAULT_KINDS, MECHANISMS
from monitor.testbed.weather.episodes import COMPUTE_ONLY, SHARED
from monitor.testbed.weather.figures import UnknownProfile
from monitor.testbed.weather.profile import STAGES, TOTALS, BadProfile


def test_the_shipped_profiles_are_listed() -> None:
    assert {"calm", "geon", "teragrid"} <= set(profiles.names())


def test_an_unknown_profile_is_refused_without_importing_it() -> None:
    with pytest.raises(UnknownProfile, match=r"no weather profile '\.\.figures'; known are calm, "):
        profiles.load("..figures")
    with pytest.raises(UnknownProfile):
        profiles.load("antigravity")
    assert "antigravity" not in sys.modules


def test_a_profile_without_one_of_the_stages_is_refused() -> None:
    teragrid = profiles.load("teragrid")
    lacking = {stage: figures for stage, figures in teragrid.gather.items() if stage != "compute"}
    with pytest.raises(BadProfile, match="gather must have each stage once; missing or unknown: compute"):
        replace(teragrid, gather=lacking)


@pytest.mark.parametrize(("gather", "circle"), [(0.8, 0.7), (0.5, 1.1), (0.1, 0.5)])
def test_gather_cannot_pass_more_often_than_circle(gather: float, circle: float) -> None:
    with pytest.raises(BadProfile, match="success rates"):
        replace(profiles.load("teragrid"), passed_gather=gather, passed_circle=circle)


def test_calm_takes_a_third_of_the_mean_times_of_teragrid() -> None:
    calm, teragrid = profiles.load("calm"), profiles.load("teragrid")
    for stage in STAGES:
        assert calm.gather[stage].mean == pytest.approx(teragrid.gather[stage].mean / 3)
        assert calm.preco[stage].mean == pytest.approx(teragrid.preco[stage].mean / 3)


def test_every_mechanism_has_a_stage_kinds_of_faults_and_affected_probes() -> None:
    assert set(MECHANISMS) == set(FAULT_KINDS) == {*SHARED, *COMPUTE_ONLY}
    assert TOTALS["total_essential"] == ("transfer_data", "queue_wait", "compute", "transfer_results")
    assert TOTALS["total_core"] == ("transfer_data", "compute", "transfer_results")
