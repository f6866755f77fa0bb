"""Network namespaces and TUN devices of the kernel. Linux and root only."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import struct
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.programs import locate

TUN = Path("/dev/net/tun")
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI, _IFF_TUN_EXCL = 0x0001, 0x1000, 0x8000
_IP_SECONDS = 60.0


@contextlib.contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Move this thread to the network namespace of the process *pid* while the context is open.

    Raises:
        OSError: there is no such process, or permission is denied.
    """
    ours = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        theirs = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(theirs)
        finally:
            os.close(theirs)
        try:
            yield
        finally:
            _enter(ours)
    finally:
        os.close(ours)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter a network namespace: {os.strerror(number)}")


def open_tun(name: str) -> int:
    """Create the TUN device *name* in the current network namespace; return its descriptor.

    The device exists while the descriptor is open.

    Raises:
        OSError: permission denied, or a device of that name exists.
    """
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = _IFF_TUN | _IFF_NO_PI | _IFF_TUN_EXCL
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError as error:
        os.close(descriptor)
        raise OSError(error.errno, f"cannot create the device {name}: {error.strerror}") from error
    return descriptor


def configure(name: str, address: str, network: str, mtu_bytes: int) -> None:
    """Set the *address* of device *name* and its route to *network*. Raises like ``ip``."""
    ip(
        f"address add {address}/32 dev {name}",
        f"link set {name} up mtu {mtu_bytes}",
        f"route add {network} dev {name} src {address}",
    )


def ip(*commands: str) -> None:
    """Run ``ip`` with *commands* in the current network namespace.

    Raises:
        TestbedError, MissingProgram: ``ip`` fails or is not installed.
    """
    done = subprocess.run(
        [locate("ip"), "-batch", "-"],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        timeout=_IP_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise TestbedError(f"ip failed to {'; '.join(commands)}: {done.stderr.strip()}")


def routes() -> list[IPv4Network]:
    """Return the networks to which the current network namespace has routes, without the default route."""
    done = subprocess.run(
        [locate("ip"), "-json", "-4", "route", "show", "table", "all"],
        capture_output=True,
        text=True,
        timeout=_IP_SECONDS,
        check=True,
    )
    targets = (row["dst"] for row in json.loads(done.stdout or "[]"))
    return [IPv4Network(target) for target in targets if target != "default"]
