"""TeraGrid: batch queues of very uneven length, and faults on two days of five."""

from monitor.reports.published_numbers import GEON, TERAGRID
from monitor.testbed.weather.figures import RuntimeFigures
from monitor.testbed.weather.profile import Profile, Published, of_totals, runtime_figures

PROFILE = Profile(
    gather=runtime_figures(TERAGRID.stages()),
    # Not published: fewer sites, one source with more data, more tasks in the queue, more to compute.
    preco={
        "init": RuntimeFigures(30.0, 22.0, 600.0, 28.0),
        "stage_data": RuntimeFigures(30.0, 26.0, 300.0, 15.0),
        "build_executable": RuntimeFigures(18.0, 6.0, 80.0, 4.5),
        "transfer_data": RuntimeFigures(26.0, 16.0, 420.0, 22.0),
        "queue_wait": RuntimeFigures(120.0, 30.0, 1400.0, 140.0),
        "compute": RuntimeFigures(180.0, 170.0, 420.0, 14.0),
        "transfer_results": RuntimeFigures(22.0, 17.0, 180.0, 11.0),
        "cleanup": RuntimeFigures(9.0, 3.0, 300.0, 14.0),
    },
    coupling={
        "init": 0.7,
        "stage_data": 0.7,
        "build_executable": 0.7,
        "transfer_data": 0.66,
        "queue_wait": 0.4,
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
        correlations=of_totals(GEON.correlations),  # none are published for TeraGrid
        passed=TERAGRID.passed,
    ),
)
