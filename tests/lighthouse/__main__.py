"""``make lighthouse``: measure every page by Lighthouse; print a table and write ``var/lighthouse.json``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor.core import env
from monitor.operations.embedded.throwaway import throwaway
from tests.bench.web import serving
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.node_packages import installed, missing_programs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TARGET = 95
CATEGORIES = ("performance", "accessibility", "best-practices")
FORMS = ("mobile", "desktop")
DEMO_ROUNDS = 2
ROUNDS_DONE = "The rounds are done."
UP = "gridcast is up: "  # and the address
RUNS = 3  # of a page whose performance is below the target

Results = list[dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lighthouse", description="Measure all pages.")
    parser.add_argument("--data", nargs="+", choices=("demo", "year"), default=["demo", "year"])
    parser.add_argument("--form", nargs="+", choices=FORMS, default=[*FORMS])
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", default=[""], help="pages with one of these in the address"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="at most, of a page below the target")
    options = parser.parse_args()
    missing = [*missing_programs(), *([] if CHROMIUM else ["chromium"])]
    if missing:
        print(f"skipped: missing on this machine: {', '.join(missing)}")
        return 0
    tool = installed(HERE, "lighthouse")
    results: Results = []
    for data in options.data:
        with tempfile.TemporaryDirectory(prefix="gridcast-lh-") as directory:
            Path(directory).chmod(0o755)  # as root, PostgreSQL runs as another user
            with DATA[data](Path(directory)) as (base, prepared):
                addresses = [
                    each for each in prepared["addresses"] if any(text in each for text in options.only)
                ]
                asked = {"base": base, "session": prepared["session"], "addresses": addresses}
                asked |= {"forms": options.form, "runs": options.runs, "target": TARGET, "chromium": CHROMIUM}
                results += [{"data": data, **result} for result in measure(tool, asked)]
    file = env.make_var_directory(ROOT / "var") / "lighthouse.json"
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if show(results) else 1


def measure(tool: Path, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the result of each page and form factor, and print it when it is there."""
    argv = ["node", str(tool / "measure.mjs")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdin
        assert node.stdout
        node.stdin.write(json.dumps(asked))
        node.stdin.close()
        for line in node.stdout:
            result = json.loads(line)
            print(row(result), flush=True)
            yield result
    if node.returncode:
        raise SystemExit(f"Lighthouse ended with status {node.returncode}")


@contextlib.contextmanager
def of_year(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Serve a small grid with a year of hourly runs."""
    with throwaway(directory / "servers", {}) as servers:
        own = {**servers, "GRIDCAST_VAR": f"{directory}/var", "DJANGO_SETTINGS_MODULE": "monitor.settings"}
        variables = {**os.environ, **own}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=variables, check=True)
        prepared = prepare(variables, "year")
        with serving("monitor.wsgi:application", own) as (host, port):
            yield f"http://{host}:{port}", prepared


@contextlib.contextmanager
def of_demo(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the demo until each of its series has run some times, and while it is measured."""
    variables = {
        **os.environ,
        "GRIDCAST_VAR": f"{directory}/var",
        "DJANGO_SETTINGS_MODULE": "monitor.settings",
    }
    argv = [sys.executable, "manage.py", "demo", f"--rounds={DEMO_ROUNDS}"]
    with subprocess.Popen(argv, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as demo:
        try:
            base = ""
            assert demo.stdout
            for line in demo.stdout:
                print(line, end="", flush=True)
                base = line.removeprefix(UP).strip().rstrip("/") if line.startswith(UP) else base
                if ROUNDS_DONE in line:
                    break
            if not base:
                raise SystemExit("the demo did not come up")
            yield base, prepare(variables)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate()  # reads what it still says


def prepare(variables: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "tests.lighthouse.prepare", *arguments]
    printed = subprocess.check_output(argv, cwd=ROOT, env=variables, text=True)
    prepared: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return prepared


DATA = {"demo": of_demo, "year": of_year}


def row(result: Mapping[str, Any]) -> str:
    scores = " ".join(f"{result['scores'][name]:>4}" for name in CATEGORIES)
    figures = f"{result['first_paint_ms']:>6} {result['largest_paint_ms']:>6} {result['blocking_ms']:>6}"
    return f"{scores} {figures} {result['bytes'] // 1000:>5} kB  {result['form']:<8}{result['address']}"


def show(results: Sequence[Mapping[str, Any]]) -> bool:
    """Print the pages below the target with what fails; return whether there are none."""
    below = [each for each in results if min(each["scores"].values()) < TARGET]
    print(f"\n{len(results) - len(below)} of {len(results)} measurements reach {TARGET} in all categories")
    for each in below:
        print(f"{each['data']}: {row(each)}")
        for failed in each["failed"]:
            parts = " | ".join(filter(None, failed["parts"]))
            print(f"    {failed['audit']}: {failed['score']:g} {parts[:160]}")
    return not below


if __name__ == "__main__":
    sys.exit(main())
