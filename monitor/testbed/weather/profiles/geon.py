"""GEON: small clusters and slow middleware; parallel applications wait in a queue, single jobs do not."""

from monitor.reports.published_numbers import COMBINED, GEON, TERAGRID
from monitor.testbed.weather.figures import RuntimeFigures
from monitor.testbed.weather.profile import Profile, Published, of_totals, runtime_figures

PROFILE = Profile(
    gather=runtime_figures(GEON.stages()),  # job start-up stands for the queue
    # Not published. The published correlation falls from 0.54 to 0.32 when the queue is included, so PreCo
    # waits for something that a single job of Gather does not: its queue is uncoupled and uneven.
    preco={
        "init": RuntimeFigures(92.0, 70.0, 180.0, 9.0),
        "stage_data": RuntimeFigures(48.0, 43.0, 110.0, 6.0),
        "build_executable": RuntimeFigures(36.0, 32.0, 66.0, 7.5),
        "transfer_data": RuntimeFigures(52.0, 36.0, 160.0, 20.0),
        "queue_wait": RuntimeFigures(75.0, 40.0, 320.0, 33.0),
        "compute": RuntimeFigures(140.0, 134.0, 230.0, 5.0),
        "transfer_results": RuntimeFigures(24.0, 20.0, 190.0, 10.0),
        "cleanup": RuntimeFigures(62.0, 42.0, 340.0, 16.0),
    },
    coupling={
        "init": 0.7,
        "stage_data": 0.7,
        "build_executable": 0.7,
        "transfer_data": 0.62,
        "queue_wait": 0.0,
        "compute": 0.5,
        "transfer_results": 0.62,
        "cleanup": 0.7,
    },
    memory=0.6,
    load=0.12,
    link=0.5,
    passed_gather=GEON.passed[COMBINED],
    passed_circle=TERAGRID.passed["circle"],  # not published: TeraGrid's
    published=Published(
        totals=runtime_figures(GEON.totals()),
        correlations=of_totals(GEON.correlations),
        passed=GEON.passed,
    ),
)
