"""Namespaces for some sites and the emulator between them, as one context."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from monitor import env
from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.sites.processes import kill_with_variable
from monitor.testbed.wan.emulator import EmulatorPlan, NetworkEnd
from monitor.testbed.wan.enter_contexts import all_entered
from monitor.testbed.wan.geography import HUB
from monitor.testbed.wan.namespaces import routes
from monitor.testbed.wan.site_namespaces import Namespaces, covers, holding
from reporters import process
from reporters.error_lines import tail

MARK = "GRIDCAST_WAN"  # names the directory in the environment of everything of a network
MTU_BYTES = 9000  # jumbo frames, as research networks have them: the emulator is quicker with fewer packets
_MAXIMUM_SITES = 200
_NUMBERS = range(64)
_HUB_HOST = 250
_UP_SECONDS = 30.0


class NoNetwork(TestbedError):
    """Every network that the test-bed might use is taken on this machine."""


@dataclass(frozen=True)
class WideAreaNetwork:
    """A network that is up. *number* is its own on this machine; *sites* are in order, without the hub."""

    number: int
    sites: Mapping[str, Namespaces]
    emulator: process.Running
    counters: Path

    @property
    def addresses(self) -> dict[str, str]:
        """Of every site, and of the hub: the machine as sites see it."""
        return addresses(self.number, tuple(self.sites))

    def complaints(self) -> list[str]:
        """What the emulator has complained of so far."""
        return self.emulator.output.splitlines()[1:]

    def check(self) -> None:
        """Raise NotServing if the emulator or a site's namespaces have ended."""
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
    """Site -> address in the network of that number; the hub's too."""
    known = {name: f"10.98.{number}.{host}" for host, name in enumerate(sites, 1)}
    return {**known, HUB: f"10.98.{number}.{_HUB_HOST}"}


def environment(directory: Path) -> dict[str, str]:
    """That of everything that belongs to the network in *directory*."""
    return {**os.environ, MARK: str(directory)}


def kill_leftovers(directory: Path) -> None:
    """Kill what a network in *directory* has left that could not end by itself; namespaces go with it."""
    kill_with_variable(f"{MARK}={directory}")


@contextlib.contextmanager
def emulated(
    directory: Path, sites: Sequence[str], tables: Sequence[Path], *, preferred: int = 0, seed: int = 0
) -> Iterator[WideAreaNetwork]:
    """A network of *sites* as *tables* say, until the context ends; each gets a directory in *directory*.

    Raises:
        NotServing, NoNetwork, TestbedError, OSError: it cannot be had.
    """
    if not 1 <= len(sites) <= _MAXIMUM_SITES or HUB in sites:
        raise ValueError(f"a network has 1 to {_MAXIMUM_SITES} sites, none of them called {HUB!r}")
    with contextlib.ExitStack() as last:
        number = last.enter_context(_reserved(preferred))
        hosts = addresses(number, sites)
        names = all_entered(last, [_site(directory / name, hosts) for name in sites])
        held = dict(zip(sites, names, strict=True))
        counters = directory / "counters.json"
        ends = [NetworkEnd(name, hosts[name], "wan0", held[name].pid) for name in sites]
        plan = EmulatorPlan(
            network=f"10.98.{number}.0/24",
            ends=[NetworkEnd(HUB, hosts[HUB], _device(number)), *ends],
            tables=tables,
            counters=counters,
            mtu_bytes=MTU_BYTES,
            seed=seed,
        )
        yield WideAreaNetwork(number, held, last.enter_context(_emulator(directory, plan)), counters)


def _site(directory: Path, hosts: Mapping[str, str]) -> contextlib.AbstractContextManager[Namespaces]:
    home = directory / "home"
    home.mkdir(parents=True, exist_ok=True)
    mounts = covers(directory, hosts, home)
    return holding(directory.name, mounts=mounts, environment=environment(directory.parent))


@contextlib.contextmanager
def _emulator(directory: Path, plan: EmulatorPlan) -> Iterator[process.Running]:
    file = directory / "emulator.json"
    file.write_text(plan.to_json(), encoding="utf-8")
    argv = [sys.executable, "-m", "monitor.testbed.wan.emulator", str(file)]
    with process.start(argv, env=environment(directory), cwd=str(env.ROOT)) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _UP_SECONDS):
            done = running.poll()
            said = tail(done.stderr).strip() if done else "it was not ready in time"
            raise NotServing(f"the network cannot be emulated: {said}")
        yield running


@contextlib.contextmanager
def _reserved(preferred: int) -> Iterator[int]:
    """The number of a network that nobody else on this machine has, *preferred* if it is free."""
    for number in (preferred, *_NUMBERS):
        with socket.socket(socket.AF_UNIX) as reservation:
            try:
                reservation.bind(f"\0{_device(number)}")  # the kernel gives it back however we end
            except OSError:
                continue
            if not _is_taken(number):
                yield number
                return
    raise NoNetwork(f"the networks 10.98.0.0/24 to 10.98.{_NUMBERS[-1]}.0/24 are all in use here")


def _is_taken(number: int) -> bool:
    ours = IPv4Network(f"10.98.{number}.0/24")
    return any(ours.overlaps(route) for route in routes())


def _device(number: int) -> str:
    return f"gridcast{number}"
