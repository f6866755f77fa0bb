"""Run the namespaces of all sites and the emulator between them, as one context."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from monitor.core import env
from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.sites.processes import kill_with_variable
from monitor.testbed.wan.emulator import EmulatorPlan, NetworkEnd
from monitor.testbed.wan.enter_contexts import enter_all
from monitor.testbed.wan.geography import HUB
from monitor.testbed.wan.namespaces import routes
from monitor.testbed.wan.site_namespaces import Namespaces, site_namespaces, write_covers
from reporters import process
from reporters.error_lines import tail

VARIABLE = "GRIDCAST_WAN"  # has the network's directory in the environment of its processes
MTU_BYTES = 9000  # jumbo frames, as in research networks: fewer packets to emulate
_MAXIMUM_SITES = 200
_NUMBERS = range(64)
_HUB_HOST = 250
_UP_SECONDS = 60.0


class NoNetwork(TestbedError):
    """All network numbers that test-beds may use are taken on this machine."""


@dataclass(frozen=True)
class WideAreaNetwork:
    """A running network. *number* is unique on this machine; *sites* are in order and exclude the host."""

    number: int
    sites: Mapping[str, Namespaces]
    emulator: process.Running
    counters: Path

    @property
    def addresses(self) -> dict[str, str]:
        """Return, by name, the address of every site and of the hub, which is the host."""
        return addresses(self.number, tuple(self.sites))

    def messages(self) -> list[str]:
        """Return the emulator's error messages so far."""
        return self.emulator.output.splitlines()[1:]

    def check(self) -> None:
        """Raise NotServing if the emulator or the first process of a site has ended."""
        for name, running in [("the emulator", self.emulator), *self._holders()]:
            try:
                done = running.poll()
            except process.ProcessError as error:
                raise NotServing(f"{name} ended: {error}") from error
            if done is not None:
                raise NotServing(f"{name} ended with status {done.returncode}: {tail(done.stderr).strip()}")

    def _holders(self) -> Iterable[tuple[str, process.Running]]:
        return ((f"site {name}", site.running) for name, site in self.sites.items())


def addresses(number: int, sites: Sequence[str]) -> dict[str, str]:
    """Return, by name, the addresses of *sites* and of the hub (the host) in network *number*."""
    site_addresses = {name: f"10.98.{number}.{host}" for host, name in enumerate(sites, 1)}
    return {**site_addresses, HUB: f"10.98.{number}.{_HUB_HOST}"}


def environment(directory: Path) -> dict[str, str]:
    """Return the environment of the processes of the network in *directory*."""
    return {**os.environ, VARIABLE: str(directory)}


def kill_leftovers(directory: Path) -> None:
    """Kill the processes left by a network in *directory*; the kernel then removes their namespaces."""
    kill_with_variable(f"{VARIABLE}={directory}")


@contextlib.contextmanager
def emulated(
    directory: Path, sites: Sequence[str], tables: Sequence[Path], *, preferred: int = 0, seed: int = 0
) -> Iterator[WideAreaNetwork]:
    """Run a network of *sites* until the context ends; each site has a subdirectory of *directory*.

    *tables* are files of link tables. *preferred* is the network number to use if it is free. *seed* starts
    the random loss and jitter.

    Raises:
        NotServing, NoNetwork, TestbedError, OSError: the network cannot be started.
    """
    if not 1 <= len(sites) <= _MAXIMUM_SITES or HUB in sites:
        raise ValueError(f"a network has 1 to {_MAXIMUM_SITES} sites, none of them called {HUB!r}")
    with contextlib.ExitStack() as stack:
        number = stack.enter_context(_reserved(preferred))
        hosts = addresses(number, sites)
        names = enter_all(stack, [_site(directory / name, hosts) for name in sites])
        namespaces = dict(zip(sites, names, strict=True))
        counters = directory / "counters.json"
        ends = [NetworkEnd(name, hosts[name], "wan0", namespaces[name].pid) for name in sites]
        plan = EmulatorPlan(
            network=f"10.98.{number}.0/24",
            ends=[NetworkEnd(HUB, hosts[HUB], _device(number)), *ends],
            tables=tables,
            counters=counters,
            mtu_bytes=MTU_BYTES,
            seed=seed,
        )
        yield WideAreaNetwork(number, namespaces, stack.enter_context(_emulator(directory, plan)), counters)


def _site(directory: Path, hosts: Mapping[str, str]) -> contextlib.AbstractContextManager[Namespaces]:
    home = directory / "home"
    home.mkdir(parents=True, exist_ok=True)
    mounts = write_covers(directory, hosts, home)
    return site_namespaces(directory.name, mounts=mounts, environment=environment(directory.parent))


@contextlib.contextmanager
def _emulator(directory: Path, plan: EmulatorPlan) -> Iterator[process.Running]:
    file = directory / "emulator.json"
    file.write_text(plan.to_json(), encoding="utf-8")
    argv = [sys.executable, "-m", "monitor.testbed.wan.emulator", str(file)]
    with process.start(argv, env=environment(directory), cwd=str(env.ROOT)) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _UP_SECONDS):
            done = running.poll()
            reason = tail(done.stderr).strip() if done else f"not up after {_UP_SECONDS:g} s"
            raise NotServing(f"cannot emulate the network: {reason}")
        yield running


@contextlib.contextmanager
def _reserved(preferred: int) -> Iterator[int]:
    """Reserve the number of a network that is unused on this machine, *preferred* if possible; yield it."""
    for number in (preferred, *_NUMBERS):
        with socket.socket(socket.AF_UNIX) as reservation:
            try:
                reservation.bind(f"\0{_device(number)}")  # the kernel releases it however the process ends
            except OSError:
                continue
            if not _is_taken(number):
                yield number
                return
    raise NoNetwork(f"the networks 10.98.0.0/24 to 10.98.{_NUMBERS[-1]}.0/24 are all in use on this machine")


def _is_taken(number: int) -> bool:
    ours = IPv4Network(f"10.98.{number}.0/24")
    return any(ours.overlaps(route) for route in routes())


def _device(number: int) -> str:
    return f"gridcast{number}"
