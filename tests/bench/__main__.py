"""``make bench``: run every benchmark of this folder, print a table, write ``var/bench.json``.

A benchmark is a file with a function ``measure() -> list[Result]``; it finds an empty depot and a broker.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import tempfile
from pathlib import Path

import django

from monitor.embedded import places
from monitor.embedded.throwaway import throwaway
from tests.bench.base import Result

ROOT = Path(__file__).resolve().parents[2]
NOT_BENCHMARKS = {"__main__", "bare", "base", "insert", "years"}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="gridcast-bench-") as directory:
        Path(directory).chmod(0o755)  # as root PostgreSQL runs as somebody else, who must get at its data
        with throwaway(Path(directory) / "servers") as servers:
            os.environ.update(
                servers, GRIDCAST_VAR=f"{directory}/var", DJANGO_SETTINGS_MODULE="monitor.settings"
            )
            results = run_all()
    show(results)
    return 0 if all(result.holds for result in results) else 1


def run_all() -> list[Result]:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    found = []
    for name in sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if name not in NOT_BENCHMARKS:
            found += importlib.import_module(f"tests.bench.{name}").measure()
    return found


def show(results: list[Result]) -> None:
    file = places.made(ROOT / "var") / "bench.json"
    file.write_text(json.dumps([result.document() for result in results], indent=2) + "\n", encoding="utf-8")
    for result in results:
        verdict = "holds" if result.holds else "MISSED"
        bound = ">=" if result.better == "higher" else "<="
        print(f"{verdict:6} {result.name:<42} {result.ratio:8.3f} {bound} {result.target:g}")
        for name, value in result.figures.items():
            print(f"{'':9}{name:<40} {value:14,.1f}")


if __name__ == "__main__":
    sys.exit(main())
