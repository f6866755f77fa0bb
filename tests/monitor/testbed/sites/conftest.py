"""One grid whose weather the tests set, shared by all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitor.testbed.sites import LocalGridOptions, running_sites
from tests.monitor.testbed.sites.local_grid import REFERENCE_BYTES, Client, SetWeather


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Start a grid of seven sites at scale 1: a drawn second is a real one."""
    weather = SetWeather()
    options = LocalGridOptions(
        scale=1.0, reference_file_bytes=REFERENCE_BYTES, reference_result_bytes=REFERENCE_BYTES
    )
    with running_sites(tmp_path_factory.mktemp("grid"), weather=weather, options=options) as grid:
        yield Client(grid, weather)
