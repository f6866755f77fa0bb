"""IO500: ``result.txt``, which has a section for each phase (github.com/IO500/io500, src/main.c).

Each phase is a run of the series of its name, such as ``ior-easy-write``; the section ``SCORE`` is a run of
the series ``score`` and begins at the first phase. The files of several runs may follow each other. Times
have no zone; they are there unless the benchmark ran without messages (``verbosity = 0``). A phase that the
benchmark marks as invalid, because it was too short, has the parameter ``valid`` false: its rate counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from monitor.runs.imports.formats import results, text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    Option,
    SkippedRecord,
    Unreadable,
    stage,
)
from probes.base import Measurement, Value

_GIB = 1024.0**3
_TIME = "%Y-%m-%d %H:%M:%S"
_SECTION = re.compile(r"\[([A-Za-z0-9_-]{1,60})\]\s*$")
_PAIR = re.compile(r"([A-Za-z0-9_-]{1,60})\s*=\s*(.*)$")
_INVALID = "; ERROR INVALID"
_MOST_PAIRS = 1000
_UNSCORED = ("timestamp",)


@dataclass
class _Section:
    where: str
    name: str
    pairs: dict[str, str] = field(default_factory=dict)
    is_valid: bool = True


class Importer:
    summary = "IO500 result.txt: one series per phase, and one for the score."
    measures = "grid"
    options: Mapping[str, Option] = results.LOCAL_TIMES
    example = Example(
        b"[run]\nprocs           = 4\nversion         = io500-sc23\nmode            = standard\n\n"
        b"[ior-easy-write]\nt_start         = 2026-11-26 15:00:00\nexe             = ./ior -w -t 2m\n"
        b"throughput-stonewall = 0.61\nscore           = 0.588461\nt_delta         = 310.4411\n"
        b"t_end           = 2026-11-26 15:05:10\n\n"
        b"[mdtest-easy-write]\nt_start         = 2026-11-26 15:05:10\nexe             = ./mdtest -F\n"
        b"rate-stonewall  = 21.5\nscore           = 20.118204\nt_delta         = 305.0127\n"
        b"t_end           = 2026-11-26 15:10:15\n\n"
        b"[SCORE]\nMD              = 20.118204\nBW              = 0.588461\nSCORE           = 3.440715\n"
        b"hash            = 1F2E3D4C\n"
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.resource, self.zone = options["resource"], results.zone(options)

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        run: dict[str, Value] = {}
        began: datetime | None = None
        for section in _sections(stream):
            try:
                if section.name == "run":
                    run, began = _parameters(section), None
                elif section.name.startswith("SCORE"):
                    if began is None:
                        raise InvalidField("t_start", "a phase with its start before the score", "none")
                    yield self._score(section, began, run)
                else:
                    item = self._phase(section, run)
                    if isinstance(item, ImportedRun):
                        began = began or item.slot
                    yield item
            except InvalidField as error:
                yield error.at(section.where)

    def _phase(self, section: _Section, run: dict[str, Value]) -> ImportedRun | SkippedRecord:
        pairs = section.pairs
        if section.name in _UNSCORED or "score" not in pairs:
            return SkippedRecord(section.where, "the phase was not run, or has no score")
        slot = text.time("t_start", pairs.get("t_start", ""), self.zone, _TIME)
        seconds = text.seconds("t_delta", pairs.get("t_delta", ""))
        is_bandwidth = section.name.startswith("ior-")
        metric, unit, factor = (
            ("bytes_per_second", "bytes_per_second", _GIB)
            if is_bandwidth
            else ("operations_per_second", "operations_per_second", 1000.0)
        )
        stonewall = pairs.get("throughput-stonewall" if is_bandwidth else "rate-stonewall")
        values: list[tuple[str, object, float, str]] = [
            (metric, text.number("score", pairs["score"]), factor, unit)
        ]
        if stonewall is not None:
            values.append((f"stonewall.{metric}", text.number("stonewall", stonewall), factor, unit))
        return ImportedRun(
            section.where,
            slot,
            seconds,
            results.measurements(values),
            (stage("compute", "compute", seconds),),
            section.name,
            {**run, "phase": section.name, **({} if section.is_valid else {"valid": False})},
            resource=self.resource,
        )

    def _score(self, section: _Section, began: datetime, run: dict[str, Value]) -> ImportedRun:
        words = section.pairs.get("SCORE", "").split()
        metrics = [
            Measurement("score", text.number("SCORE", words[0] if words else ""), "count"),
            Measurement("score.bandwidth", text.number("BW", section.pairs.get("BW", "")), "count"),
            Measurement("score.metadata", text.number("MD", section.pairs.get("MD", "")), "count"),
        ]
        parameters = {**run, **({"valid": False} if "[INVALID]" in words else {})}
        name = section.name.lower()
        return ImportedRun(section.where, began, 0.0, metrics, (), name, parameters, resource=self.resource)


def _parameters(section: _Section) -> dict[str, Value]:
    parameters = results.scalars(section.pairs, {"version": "version", "mode": "mode"})
    processes = text.number("procs", section.pairs.get("procs", ""))
    return {**parameters, "processes": int(processes)}


def _sections(stream: BinaryIO) -> Iterator[_Section]:
    """Yield each section when the next one begins. Raises Unreadable if the file does not begin with one."""
    section: _Section | None = None
    for place, line in enumerate(text.lines(stream), start=1):
        if match := _SECTION.match(line):
            if section is not None:
                yield section
            section = _Section(f"section {match[1]}, line {place}", match[1])
        elif section is None:
            if line.strip() and not line.startswith(";"):
                break
        elif line.startswith(_INVALID):
            section.is_valid = False
        elif (match := _PAIR.match(line)) and len(section.pairs) < _MOST_PAIRS:
            section.pairs.setdefault(match[1], match[2].strip())
    if section is None:
        raise Unreadable("expected result.txt of the IO500, with the section [run]; got something else")
    yield section
