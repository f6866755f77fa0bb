"""The demo's services: a test-bed, its preparation, and gridcast itself."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from monitor.operations.serving.services import Installation
from monitor.operations.supervisor import Service
from monitor.testbed.demo import definition
from monitor.testbed.sites.grid import LocalGridOptions

# Weather with good first minutes, then occasional faults, later a long one.
SEED = 10
REMOTE_REPORTERS = "reporters"


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo; the web server accepts the connections of *listener*.

    *scale*: the number of grid seconds per real second.
    """

    installation: Installation
    listener: socket.socket
    weather: str = "teragrid"
    seed: int = SEED
    scheduled: bool = True
    wan: bool = False
    scale: float = LocalGridOptions.scale

    @property
    def grid_file(self) -> Path:
        return self.installation.var / ("wan" if self.wan else "testbed") / "grid.json"

    @property
    def grid(self) -> definition.DemoGrid:
        return definition.WAN if self.wan else definition.LOCAL


def services(options: DemoOptions) -> list[Service]:
    """Return all services of the demo; servers with a URL in the environment are not started."""
    embedded = options.installation.embedded()
    servers = [service.name for service in embedded]
    gridcast = options.installation.gridcast(options.listener, depends_on=[*servers, "prepare", "testbed"])
    remote = [] if options.wan else [_remote_reporters(options)]
    return [*embedded, _testbed(options), _prepare(options, servers), *gridcast, *remote]


def _testbed(options: DemoOptions) -> Service:
    directory = options.grid_file.parent
    argv = ["testbed", "up", f"--sites={len(definition.SITES)}", f"--directory={directory}"]
    argv += [f"--weather={options.weather}", f"--seed={options.seed}"]
    argv += ["--wan"] if options.wan else [f"--scale={options.scale}"]

    def remove_old_description() -> None:
        options.grid_file.unlink(missing_ok=True)

    return options.installation.command(
        "testbed", *argv, before=remove_old_description, ready=options.grid_file.exists
    )


def _remote_reporters(options: DemoOptions) -> Service:
    """Return the service that deploys the remote reporters. The demo does not wait for it."""
    url = options.installation.address.local_url
    return options.installation.command(
        REMOTE_REPORTERS, "demo_reporters", f"--url={url}", depends_on=["testbed", "web"]
    )


def _prepare(options: DemoOptions, servers: list[str]) -> Service:
    flags = {"--unscheduled": not options.scheduled, "--wan": options.wan}
    argv = ["prepare_demo", *(flag for flag, is_given in flags.items() if is_given)]
    return options.installation.command("prepare", *argv, once=True, depends_on=[*servers, "testbed"])
