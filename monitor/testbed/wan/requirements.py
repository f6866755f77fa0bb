"""The requirements of the wide-area test-bed, and which of them this machine lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable

from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.programs import missing
from monitor.testbed.wan.namespaces import TUN

_TOOLS = ("ip", "nsenter", "unshare", "sshd")
_OF_TRANSFER = {
    "ssh": (),
    "gridftp": ("globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "openssl"),
}
_OF_BATCH = {"fork": (), "slurm": ("slurmctld", "munged")}

TRANSFERS, BATCHES = tuple(_OF_TRANSFER), tuple(_OF_BATCH)


class CannotRunHere(TestbedError):
    """Rights or programs for the wide-area test-bed are missing."""


def check(transfer: str, batch: str) -> None:
    """Raise CannotRunHere, with everything that is missing, unless the test-bed can run here.

    *transfer* and *batch* are kinds of servers, as in ``services.ServerKinds``.
    """
    lacking = [*lacking_rights(), *missing((*_TOOLS, *_OF_TRANSFER[transfer], *_OF_BATCH[batch]))]
    if lacking:
        raise CannotRunHere(f"the wide-area test-bed cannot run here: {'; '.join(lacking)}")


def lacking_rights() -> Iterable[str]:
    """Yield a message for each missing right to use namespaces and TUN devices."""
    if os.geteuid() != 0:
        yield "network namespaces need root"
    elif not TUN.exists():
        yield f"{TUN} does not exist (kernel module tun)"
    elif not _opens():
        yield f"{TUN} cannot be opened, perhaps because a container has no permission"


def _opens() -> bool:
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError:
        return False
    return True
