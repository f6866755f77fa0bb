"""Emulated areas, and what the reporter does on them. As a program: all of it, by the user who runs it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted

ROOT = Path(__file__).parents[4]
PROFILES = {"disk": "p690-scsi", "raid": "p690-raid5", "flash": "flash"}
MADBENCH = {"no_pix": 512, "no_bin": 4, "tasks": 2}
SWEEP: dict[str, object] = {"request_bytes": "4096,1048576", "pattern": "sequential", "queue_depth": "1"}
SWEEP |= {"direction": "read", "file_bytes": 4_194_304, "seconds": 0.05, "tool": "own"}
STREAMS: dict[str, object] = {"tasks": 2, "file_bytes": 1_048_576, "bins": 2}


@contextlib.contextmanager
def mounted_areas(emulator: Path, directory: Path) -> Iterator[dict[str, Path]]:
    """Yield the scratch directory on each emulated device."""
    with contextlib.ExitStack() as stack:
        found = {}
        for area, profile in PROFILES.items():
            place = directory / area
            place.mkdir()
            stack.enter_context(mounted(emulator, place, profiles.load(profile)))
            found[area] = place / "scratch"
            found[area].mkdir(mode=0o700)
        yield found


def reporter(*arguments: str) -> str:
    command = [sys.executable, "-m", "reporters", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def signature(scratch: Path, directory: Path) -> str:
    """Trace MADbench at *scratch* by hand, as docs/storage.md says, and return its signature."""
    settings = [f"--set={name}={value}" for name, value in MADBENCH.items()]
    probe = [sys.executable, "-m", "reporters", "once", "madbench", f"--scratch={scratch}", *settings]
    trace, file = str(directory / "trace"), directory / "madbench.json"
    reporter("iotrace", "run", "-o", trace, "--area", str(scratch), "--only", "madbench", "--", *probe)
    reporter("iotrace", "signature", trace, "-o", str(file), "--application", "madbench", *settings)
    return file.read_text(encoding="utf-8").strip()


def outcome(probe: str, scratch: Path, parameters: Mapping[str, object]) -> str:
    settings = [f"--set={name}={value}" for name, value in parameters.items()]
    text = reporter("once", probe, "--json", f"--scratch={scratch}", *settings)
    return str(json.loads(text)["outcome"])


def main(home: Path) -> None:
    """Print the user and the outcomes of all probes by area."""
    with mounted_areas(build.emulator(home / "cache"), home) as areas:
        probes: dict[str, Mapping[str, object]] = {
            "storage_sweep": SWEEP,
            "streams": STREAMS,
            "replay": {"signature": signature(areas["disk"], home)},
        }
        outcomes = {
            area: {probe: outcome(probe, scratch, parameters) for probe, parameters in probes.items()}
            for area, scratch in areas.items()
        }
    print(json.dumps({"user": os.geteuid(), "outcomes": outcomes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
