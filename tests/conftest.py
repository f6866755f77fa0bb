"""For every test. The servers of the run are started before Django is set up: see ``servers.py``."""

from __future__ import annotations

import pytest

# Modules that take a minute or so, the longest first: a worker that gets one last keeps the others waiting.
# They wait more than they compute.
LONG = (
    "test_demo",
    "test_every_way",
    "test_browser",
    "test_postgres",
    "test_batch",
    "test_slurm",
    "test_xrootd_transfer",
    "test_soak",
    "test_transfers",
    "test_wan_grid",
    "test_probes_over_ssh",
    "test_faults_end_to_end",
    "test_gridftp",
    "test_shells",
    "test_queues",
    "test_openssh",
    "test_preco",
    "test_fork",
)


@pytest.hookimpl(trylast=True)  # when the order has been drawn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest modules begin first; else the order is that which was drawn."""
    rank = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONG)))
