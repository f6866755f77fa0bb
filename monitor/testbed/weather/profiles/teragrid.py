"""TeraGrid: batch queues of very uneven length, and faults on two days of five."""

from monitor.testbed.weather.figures import QuietFigures, RuntimeFigures
from monitor.testbed.weather.profile import Profile, Published, of_totals, runtime_figures
from monitor.web.reports.published_numbers import TERAGRID

_PRECO = TERAGRID.preco_stages()


def _quiet(stage: str, core_cv: float, outlier_share: float) -> QuietFigures:
    """Return the figures of a stage of PreCo: mean and deviation are published, the shape is chosen."""
    return QuietFigures(_PRECO[stage].mean, _PRECO[stage].stdev, core_cv, outlier_share)


PROFILE = Profile(
    gather=runtime_figures(TERAGRID.stages()),
    # Published are four stages, the totals, and so the sums of the others: 50.24 s for init and cleanup, and
    # 295.18 s for the two transfers, which deviate by 69 s together if they do not follow the computation.
    # The forecasts of stage data, build and queue were right to some per cent beside deviations of a third
    # to more than the mean: most runs were alike, and few were very slow.
    preco={
        "init": QuietFigures(37.0, 15.0, core_cv=0.08, outlier_share=0.06),
        "stage_data": _quiet("stage_data", core_cv=0.27, outlier_share=0.025),
        "build_executable": _quiet("build_executable", core_cv=0.035, outlier_share=0.025),
        "transfer_data": RuntimeFigures(170.0, 110.0, 420.0, 41.0),
        "queue_wait": _quiet("queue_wait", core_cv=0.31, outlier_share=0.04),
        "compute": RuntimeFigures(_PRECO["compute"].mean, 285.0, 460.0, _PRECO["compute"].stdev),
        "transfer_results": RuntimeFigures(125.18, 80.0, 330.0, 32.0),
        "cleanup": QuietFigures(13.24, 9.0, core_cv=0.10, outlier_share=0.05),
    },
    coupling={
        "init": 0.7,
        "stage_data": 0.6,
        "build_executable": 0.5,
        "transfer_data": 0.66,
        "queue_wait": 0.425,
        "compute": 0.5,
        "transfer_results": 0.66,
        "cleanup": 0.7,
    },
    memory=0.6,
    load=0.05,
    link=0.95,
    passed_gather=TERAGRID.passed["gather"],
    passed_circle=TERAGRID.passed["circle"],
    published=Published(
        totals=runtime_figures(TERAGRID.totals()),
        preco={
            metric.removeprefix("stage.").removesuffix(".seconds"): (duration.mean, duration.stdev)
            for metric, duration in TERAGRID.preco.items()
        },
        correlations=of_totals(TERAGRID.correlations),
        passed=TERAGRID.passed,
    ),
)
