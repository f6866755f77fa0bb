"""The emulator: one process with a TUN device in every namespace that forwards packets between them.

``python -m monitor.testbed.wan.emulator PLAN`` with the path of a plan in JSON: ``network``, ``mtu_bytes``,
``seed``, ``ends`` (name, address, device, pid; pid 0 is the emulator's own namespace), ``tables`` (files of
link tables; a later table overrides an earlier one, and each file may be missing) and ``counters`` (a file to
write).

The program prints ``up`` when all devices exist. It rereads the tables when one of them changes. If a table
cannot be parsed, it prints one line with the error and keeps the network unchanged. It writes the counters
every second if they have changed.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import select
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from monitor.testbed.sites.files import write_atomically
from monitor.testbed.wan.links import BadLinkTable, LinkTable, parse_lines
from monitor.testbed.wan.namespaces import configure, network_of, open_tun
from monitor.testbed.wan.queueing import Network

_TABLES_SECONDS = 0.1
_COUNTERS_SECONDS = 1.0
_PACKETS_AT_ONCE = 32  # read from one device before the other devices
_LARGEST_PACKET_BYTES = 65_535
_DESTINATION = slice(16, 20)  # of an IPv4 header


@dataclass(frozen=True)
class NetworkEnd:
    """One end of the network. *pid* is a process in its namespace; 0 stands for the emulator's namespace."""

    name: str
    address: str
    device: str
    pid: int = 0


@dataclass(frozen=True)
class EmulatorPlan:
    """The parameters of an emulator.

    Attributes:
        network: network of the addresses of all ends, e.g. "10.98.0.0/24".
        tables: files of link tables; a later table overrides an earlier one.
        counters: file to which the counts of packets are written.
        seed: seed of the random loss and jitter.
    """

    network: str
    ends: Sequence[NetworkEnd]
    tables: Sequence[Path]
    counters: Path
    mtu_bytes: int
    seed: int = 0

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> EmulatorPlan:
        """Parse *text* as ``to_json`` writes it."""
        document = json.loads(text)
        document["ends"] = [NetworkEnd(**end) for end in document["ends"]]
        document["tables"] = [Path(table) for table in document["tables"]]
        document["counters"] = Path(document["counters"])
        return cls(**document)

    @property
    def names(self) -> list[str]:
        return [end.name for end in self.ends]


class Tables:
    """The link tables in files; they are read again when a file has changed."""

    def __init__(self, sites: Sequence[str], files: Sequence[Path]) -> None:
        self._sites = sites
        self._files = files
        self._stamps: list[tuple[int, int]] | None = None

    def changed(self) -> LinkTable | None:
        """Return the table if a file has changed, else None. Raises BadLinkTable, once for each change."""
        stamps = [_stamp(file) for file in self._files]
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        return read_table(self._sites, self._files)


def read_table(sites: Sequence[str], files: Sequence[Path]) -> LinkTable:
    """Return the link table of *sites* after all lines of *files*, applied in order.

    Raises:
        BadLinkTable: a line is invalid.
    """
    return LinkTable.of(
        sites, [line for file in files for line in parse_lines(_text(file), origin=file.name)]
    )


class Emulator:
    """Forwards packets between *devices* (open descriptors by name of their end), as link tables specify."""

    def __init__(self, plan: EmulatorPlan, devices: dict[str, int]) -> None:
        self._tables = Tables(plan.names, plan.tables)
        self._counters_file = plan.counters
        self._devices = devices
        self._targets = {socket.inet_aton(end.address): end.name for end in plan.ends}
        self._poll = select.epoll()
        self._sources = {}
        for name, device in devices.items():
            self._sources[device] = name
            self._poll.register(device, select.EPOLLIN)
        # Seeded, but not reproducible: the order of packets differs from run to run.
        self.network = Network(LinkTable.of(plan.names, ()), random.Random(plan.seed).random)  # noqa: S311
        self._waiting: list[tuple[float, int, int, bytes]] = []  # time, number, device, packet
        self._number = 0
        self._written_counters = ""

    def run(self) -> None:
        """Forward packets forever."""
        self.update_table()
        tables_at = counters_at = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= tables_at:
                tables_at = now + _TABLES_SECONDS
                self.update_table()
            if now >= counters_at:
                counters_at = now + _COUNTERS_SECONDS
                self._write_counters()
            self._deliver(now)
            next_at = min(tables_at, self._waiting[0][0]) if self._waiting else tables_at
            for device, _ in self._poll.poll(max(0.0, next_at - time.monotonic())):
                self._receive(device)

    def update_table(self) -> None:
        """Apply the link tables if they have changed."""
        try:
            table = self._tables.changed()
        except BadLinkTable as error:
            print(f"the network stays unchanged: {error}", flush=True)  # noqa: T201
            return
        if table is not None:
            self.network.change(table)

    def _receive(self, device: int) -> None:
        """Read packets that one end has sent and queue them for delivery."""
        source = self._sources[device]
        for _ in range(_PACKETS_AT_ONCE):
            try:
                packet = os.read(device, _LARGEST_PACKET_BYTES)
            except BlockingIOError:
                return
            target = self._targets.get(packet[_DESTINATION]) if packet[0] >> 4 == 4 else None
            if target is None or target == source:
                continue
            at = self.network.arrival(source, target, len(packet), time.monotonic())
            if at is not None:
                self._number += 1
                heapq.heappush(self._waiting, (at, self._number, self._devices[target], packet))

    def _deliver(self, now: float) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, _, device, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # a full device loses packets, as hosts do
                os.write(device, packet)

    def _write_counters(self) -> None:
        rows = [
            {"source": pair[0], "target": pair[1], **asdict(counters)}
            for pair, counters in self.network.counters.items()
            if counters.packets
        ]
        text = json.dumps(rows)
        if text != self._written_counters:
            self._written_counters = text
            write_atomically(self._counters_file, text)


def open_devices(plan: EmulatorPlan) -> dict[str, int]:
    """Open and configure a device at every end; return the descriptors by name of the end.

    Raises:
        OSError, TestbedError: a device cannot be opened or configured.
    """
    devices = {}
    for end in plan.ends:
        with network_of(end.pid) if end.pid else contextlib.nullcontext():
            devices[end.name] = open_tun(end.device)
            configure(end.device, end.address, plan.network, plan.mtu_bytes)
    return devices


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_ino)


def main(argv: Sequence[str]) -> None:
    plan = EmulatorPlan.from_json(Path(argv[1]).read_text(encoding="utf-8"))
    emulator = Emulator(plan, open_devices(plan))
    print("up", flush=True)  # noqa: T201 - the parent process waits for it
    emulator.run()


if __name__ == "__main__":
    main(sys.argv)
