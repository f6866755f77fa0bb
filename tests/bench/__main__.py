"""``make bench``: run the benchmarks of this folder, or some by name; print and write ``var/bench.json``.

A benchmark is a file with a function ``measure() -> list[Result]``; it finds an empty depot and a broker.
Benchmarks that take an hour run by name only, and in ``make nightly``. The results of each are printed and
written when it ends; one that fails is named at the end, and the others run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import django
import psycopg
from psycopg import sql

from monitor.core import env
from monitor.operations.embedded.throwaway import throwaway
from tests.bench.base import Result

ROOT = Path(__file__).resolve().parents[2]
NOT_BENCHMARKS = {
    "__main__",
    "attackers",
    "backlog_agents",
    "bare",
    "base",
    "candidates",
    "histories",
    "insert",
    "long_series",
    "one_row",
    "web",
    "wide_grid",
    "years",
}
NIGHTLY = {"growth"}
# Each benchmark is one caller, or a few, that use everything. An empty variable stands for the default.
UNLIMITED = {"GRIDCAST_PROCESSOR_SECONDS": "1000000", "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": "1000000"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", choices=[[], *benchmarks()], help="default: all but the nightly"
    )
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)  # one, in this process
    options = parser.parse_args()
    if options.into:
        options.into.write_text(
            json.dumps([result.document() for result in _measure(options.names[0])]), encoding="utf-8"
        )
        return 0
    failed = run(options.names or [name for name in benchmarks() if name not in NIGHTLY])
    return 1 if failed else 0


def benchmarks() -> list[str]:
    modules = {info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)])}
    return sorted(modules - NOT_BENCHMARKS)


def run(names: Sequence[str]) -> bool:
    """Run each benchmark in a process and an empty depot of its own; return whether one failed or missed."""
    file = env.make_var_directory(ROOT / "var") / "bench.json"
    results: list[Result] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gridcast-bench-") as directory:
        Path(directory).chmod(0o755)  # as root, PostgreSQL runs as another user
        with throwaway(Path(directory) / "servers", {}) as servers:  # never the depot of DATABASE_URL
            environment = {
                **os.environ,
                **servers,
                **UNLIMITED,
                "GRIDCAST_VAR": f"{directory}/var",
                "DJANGO_SETTINGS_MODULE": "monitor.settings",
            }
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True
            )
            for number, name in enumerate(names, 1):
                print(f"[{number}/{len(names)}] {name} ...", end="", file=sys.stderr, flush=True)
                began = time.monotonic()
                try:
                    measured = _apart(name, environment, Path(directory) / name)
                except subprocess.CalledProcessError:
                    measured = []
                    failed.append(name)
                print(f" {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
                results += measured
                file.write_text(json.dumps([each.document() for each in results], indent=2) + "\n", "utf-8")
                show(measured)
    missed = [result.name for result in results if not result.holds]
    if failed or missed:
        print("\n".join([*(f"FAILED {name}" for name in failed), *(f"MISSED {name}" for name in missed)]))
    return bool(failed or missed)


def _apart(name: str, environment: Mapping[str, str], into: Path) -> list[Result]:
    empty, depot = environment["DATABASE_URL"], f"bench_{name}"
    with psycopg.connect(empty.replace("/gridcast?", "/postgres?"), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE gridcast").format(sql.Identifier(depot)))
        variables = {**environment, "DATABASE_URL": empty.replace("/gridcast?", f"/{depot}?")}
        argv = [sys.executable, "-m", "tests.bench", name, "--into", str(into)]
        try:
            subprocess.run(argv, cwd=ROOT, env=variables, check=True)
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(depot)))
    return [Result.of(document) for document in json.loads(into.read_text(encoding="utf-8"))]


def _measure(name: str) -> list[Result]:
    django.setup()
    results: list[Result] = importlib.import_module(f"tests.bench.{name}").measure()
    return results


def show(results: list[Result]) -> None:
    for result in results:
        verdict = "holds" if result.holds else "MISSED"
        bound = ">=" if result.better == "higher" else "<="
        print(f"{verdict:6} {result.name:<42} {result.ratio:8.3f} {bound} {result.target:g}")
        for name, value in result.figures.items():
            print(f"{'':9}{name:<40} {value:14,.{1 if abs(value) >= 10 else 3}f}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
