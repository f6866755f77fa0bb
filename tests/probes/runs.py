"""Run one probe over directories of this host."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report
from reporters.run import RunnerTools

USUAL_TOOLS = RunnerTools()
LIMIT_SECONDS = 300.0  # for a busy machine; a run takes a second or two on an idle one

# Probes compile the same kernels in every run, which would be most of the time of their tests.
_COMPILE_ONCE = """\
#!/bin/sh
for word; do case $previous in -o) out=$word ;; esac; previous=$word; done
[ -n "$out" ] || exec {real} "$@"
at=${{out%/*}}
kept={kept}/$({{ printf '%s\\n' {real} "$@" | sed "s|^$at/||"; cat "$at"/*.[ch]; }} | sha256sum | cut -c 1-64)
[ -f "$kept" ] && cp "$kept" "$out" 2> /dev/null && exit
{real} "$@" || exit
cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"
"""


def run_locally(
    probe: str,
    directory: Path,
    parameters: Mapping[str, Any],
    *roles: str,
    resource: Mapping[str, Any] | None = None,
    tools: RunnerTools = USUAL_TOOLS,
    **changes: Any,
) -> Report:
    """Run *probe* with one resource per role (default: "target"). A resource is a directory of this host.

    Its PATH starts with the directory ``at-<role>/bin``; see ``install``. Its compilers compile the same
    source with the same options once. *resource* changes fields of all resources, *changes* those of the
    assignment.
    """
    path = f"{_compiler_directory().name}:/usr/local/bin:/usr/bin:/bin"
    resources = {}
    for role in roles or ("target",):
        site = f"at-{role}"
        for part in ("bin", "scratch"):
            (directory / site / part).mkdir(parents=True, exist_ok=True)
        shell = {"kind": "local", "path": f"{directory / site / 'bin'}:{path}"}
        default = ResourceConfig(site, site, str(directory / site / "scratch"), shell=shell)
        resources[site] = replace(default, **(resource or {}))
    assignment = Assignment(
        series=f"{probe}-test",
        slot=datetime(2026, 3, 1, tzinfo=UTC),
        reporter="home",
        probe=probe,
        bindings={role: [f"at-{role}"] for role in roles or ("target",)},
        resources=resources,
        parameters=parameters,
        limit_seconds=LIMIT_SECONDS,
    )
    return reporter.run(replace(assignment, **changes), tools=tools)


@functools.cache
def _compiler_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a directory with compilers, as far as they are here, that keep what they have compiled."""
    directory = tempfile.TemporaryDirectory(prefix="compiled-")
    for name in ("cc", "mpicc"):
        real = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if real is not None:
            wrapper = Path(directory.name) / name
            wrapper.write_text(_COMPILE_ONCE.format(real=real, kept=directory.name))
            wrapper.chmod(0o755)
    return directory


def install(directory: Path, program: str, script: str, role: str = "target") -> None:
    """Put a shell script before the real *program* on the PATH of a role's resource."""
    file = directory / f"at-{role}" / "bin" / program
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def metrics(report: Report) -> dict[str, float]:
    return {metric.name: metric.value for metric in report.metrics}


def units(report: Report) -> dict[str, str]:
    return {metric.name: metric.unit for metric in report.metrics}


def logged(report: Report, level: str) -> list[str]:
    return [line.text for line in report.log if line.level == level]
