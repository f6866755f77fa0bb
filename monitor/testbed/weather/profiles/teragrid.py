"""TeraGrid: batch queues of very uneven length, and faults on two days of five."""

from monitor.testbed.weather.figures import RuntimeFigures
from monitor.testbed.weather.profile import Profile, Published

PROFILE = Profile(
    # Published: mean, minimum, maximum, standard deviation of about 4,000 runs, in seconds.
    gather={
        "init": RuntimeFigures(36.03, 26.11, 847.85, 37.14),
        "stage_data": RuntimeFigures(38.41, 33.48, 418.47, 21.18),
        "build_executable": RuntimeFigures(15.35, 4.44, 70.46, 3.91),
        "transfer_data": RuntimeFigures(8.38, 5.28, 194.09, 9.20),
        "queue_wait": RuntimeFigures(84.53, 25.94, 1008.60, 101.13),
        "compute": RuntimeFigures(18.40, 17.99, 61.21, 2.04),
        "transfer_results": RuntimeFigures(15.72, 13.38, 130.53, 7.76),
        "cleanup": RuntimeFigures(10.76, 3.14, 413.46, 20.37),
    },
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
    passed_gather=0.58,
    passed_circle=0.78,
    published=Published(
        totals={
            "total": RuntimeFigures(227.62, 145.37, 1142.66, 116.02),
            "total_essential": RuntimeFigures(127.05, 63.51, 1055.52, 102.46),
            "total_core": RuntimeFigures(42.51, 36.87, 260.31, 14.36),
        },
        correlations={
            "total_essential": 0.32,
            "total_core": 0.54,
        },  # GEON's: none are published for TeraGrid
        passed={"gather": 0.58, "circle": 0.78},
    ),
)
