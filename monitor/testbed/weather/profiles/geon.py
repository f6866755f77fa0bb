"""GEON: small clusters and slow middleware, and no batch system: jobs were forked on login nodes.

PreCo did not run there. It has TeraGrid's times, so that the demo of GEON has an application, too.
"""

from monitor.testbed.weather.profile import Profile, Published, runtime_figures
from monitor.testbed.weather.profiles.teragrid import PROFILE as TERAGRID
from monitor.web.reports.published_numbers import COMBINED, GEON

PROFILE = Profile(
    gather=runtime_figures(GEON.stages()),  # job start-up stands for the queue
    preco=TERAGRID.preco,
    coupling=TERAGRID.coupling,
    memory=0.6,
    load=0.12,
    link=0.5,
    passed_gather=GEON.passed[COMBINED],  # Circle passes whenever Gather does
    passed_circle=TERAGRID.passed_circle,  # not published
    published=Published(totals=runtime_figures(GEON.totals()), passed=GEON.passed),
)
