"""Calm: a third of TeraGrid's mean times, little variance, no faults. For tests and demos."""

from collections.abc import Mapping

from monitor.testbed.weather.figures import Figures, RuntimeFigures
from monitor.testbed.weather.profile import STAGES, Profile
from monitor.testbed.weather.profiles.teragrid import PROFILE as TERAGRID


def _a_third(stages: Mapping[str, Figures]) -> dict[str, RuntimeFigures]:
    """Return figures with a third of each mean.

    In units of the new mean, the deviation is 4 %, the minimum 90 % and the maximum 130 %.
    """
    thirds = {stage: figures.mean / 3 for stage, figures in stages.items()}
    return {
        stage: RuntimeFigures(mean, 0.9 * mean, 1.3 * mean, 0.04 * mean) for stage, mean in thirds.items()
    }


PROFILE = Profile(
    gather=_a_third(TERAGRID.gather),
    preco=_a_third(TERAGRID.preco),
    coupling=dict.fromkeys(STAGES, 0.5),
    memory=0.6,
    load=0.05,
    link=0.5,
)
