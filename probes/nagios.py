"""Nagios: any executable that follows the convention of Nagios plugins is a series.

By the Monitoring Plugins Development Guidelines (monitoring-plugins.org/doc/guidelines.html): plugin output,
threshold and ranges, performance data. The exit status is the verdict:

- 0 OK passes, 1 WARNING passes with a warning in the log;
- 2 CRITICAL fails, and the plugin's first line is the reason;
- 3 UNKNOWN is no data: by the guidelines the plugin could not tell (wrong arguments, a failure of its own),
  which says nothing about what it was to look at;
- anything else is not the convention, so that nobody can say what was found: failed. So is a plugin that is
  missing, was killed or did not end in time.

Output: ``TEXT | PERFDATA``, then lines of long text; after another ``|`` all that follows is more perfdata.
One item is ``'label'=value[UOM];[warn];[crit];[min];[max]``. It becomes the metric ``perfdata.<label>`` in SI
units and, where given, ``.min``, ``.max`` and thresholds: the plugin warns above ``.warn.above``, and below
``.warn.below``; by a range that alerts inside (``@10:20``), from ``.warn.from`` to ``.warn.to``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from probes.base import Measurement, NoData, Role, Stage
from probes.common import external_metrics, external_program, units
from probes.grid import Completed

OK, WARNING, CRITICAL, UNKNOWN = range(4)
_MAX_PERFDATA_CHARACTERS = 65_536
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"  # digits in one way only: time is linear
_ITEM = re.compile(r"(?:[^\s']|'(?:[^']|'')*'?)+")  # up to a space that is not quoted
_PAIR = re.compile(r"(?:'(?P<quoted>.*)'|(?P<plain>[^'=]+))=(?P<rest>[^=]*)", re.DOTALL)
_VALUE = re.compile(rf"(?P<number>{_NUMBER}|U)(?P<unit>[^\d;'\"]*)")  # so that 1,5 is no 1
_RANGE = re.compile(rf"(?P<inside>@?)(?:(?P<start>~|{_NUMBER})?:)?(?P<end>{_NUMBER})?")


class InvalidPerfdata(ValueError):
    """What does not follow the guidelines."""


@dataclass(frozen=True)
class Output:
    """What a plugin printed: its first line, the lines of long text, and all perfdata."""

    summary: str
    long_text: tuple[str, ...]
    perfdata: str


@dataclass(frozen=True)
class Perfdatum:
    """One item. *value* is None for U, "cannot be told"; *bounds* by the end of their metric's name."""

    label: str
    value: float | None
    unit: str
    bounds: Mapping[str, float]


class Probe(external_program.ExternalProgramProbe):
    version = "1.0"
    summary = "Runs a Nagios plugin: its exit status is the verdict, its perfdata are the metrics."
    roles = {"target": Role(1, 1, "runs the plugin")}
    trial = {"command": "echo 'TRIAL OK - fine | time=0.5s;1;2'"}
    stages = (
        Stage("init", "setup"),
        Stage("run_plugin", "compute"),
        Stage("verdict", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def run_plugin(self) -> list[Measurement]:
        """The metrics, also of a plugin whose verdict is a bad one: then they are what matters."""
        self.done = self.run_program()
        self.output = parse_output(self.done.stdout)
        self._log()
        items, unreadable = parse_perfdata(self.output.perfdata)
        external_program.log_lines(
            self.grid, [(f"unreadable perfdata: {item!r}", "warning") for item in unreadable]
        )
        status = Measurement("nagios.status", self.done.returncode, "status")
        return [status, *metrics_of(items).collected(self.grid)]

    def verdict(self) -> None:
        judge(self.output.summary, self.done, self.argv[0], self.target)

    def _log(self) -> None:
        level = "warning" if self.done.returncode == WARNING else "info"
        long_text = [(line, "info") for line in self.output.long_text]
        external_program.log_lines(self.grid, [(self.output.summary or "(no output)", level), *long_text])


def judge(summary: str, done: Completed, program: str, target: str) -> None:
    """Raise what the exit status says, if it is neither OK nor WARNING."""
    said = summary or "(no output)"
    if done.returncode == UNKNOWN:
        raise NoData(f"{program} could not tell at {target}: {said}")
    if done.returncode == CRITICAL:
        raise external_program.program_failed(said, target, done)
    if done.returncode not in (OK, WARNING):
        raise external_program.program_failed(
            f"{program} ended with exit status {done.returncode}, which no plugin has: {said}", target, done
        )


def parse_output(text: str) -> Output:
    """Take apart what a plugin printed; never fails."""
    first, *others = text.splitlines() or [""]
    summary, _, perfdata = first.partition("|")
    before, _, after = "\n".join(others).partition("|")
    long_text = tuple(line.rstrip() for line in before.splitlines() if line.strip())
    return Output(summary.strip(), long_text, f"{perfdata}\n{after}".strip())


def parse_perfdata(text: str) -> tuple[list[Perfdatum], list[str]]:
    """The items that can be read, in order, and those that cannot."""
    read = [(found, _readable(found)) for found in _ITEM.findall(text[:_MAX_PERFDATA_CHARACTERS])]
    items = [item for _, item in read if item is not None]
    return items, [found for found, item in read if item is None]


def _readable(text: str) -> Perfdatum | None:
    try:
        return parse_item(text)
    except InvalidPerfdata:
        return None


def parse_item(text: str) -> Perfdatum:
    """One item, such as ``'disk /'=12MB;~:80;@90:95;0;100``. Raises InvalidPerfdata."""
    pair = _PAIR.fullmatch(text)
    if pair is None:
        raise InvalidPerfdata(text)
    written, *bounds = pair["rest"].split(";")
    value = _VALUE.fullmatch(written)
    if value is None or len(bounds) > 4:
        raise InvalidPerfdata(text)
    label = pair["plain"] if pair["quoted"] is None else pair["quoted"].replace("''", "'")
    number = None if value["number"] == "U" else float(value["number"])
    return Perfdatum(label, number, value["unit"].strip(), _bounds([*bounds, "", "", "", ""][:4]))


def _bounds(texts: list[str]) -> dict[str, float]:
    warn, crit, least, most = (text.strip() for text in texts)
    ranges = [(name, parse_range(text)) for name, text in (("warn", warn), ("crit", crit)) if text]
    bounds = {f"{name}.{end}": number for name, ends in ranges for end, number in ends.items()}
    limits = [(name, text) for name, text in (("min", least), ("max", most)) if text]
    try:
        return {**bounds, **{name: float(text) for name, text in limits}}
    except ValueError as error:
        raise InvalidPerfdata(str(error)) from None


def parse_range(text: str) -> dict[str, float]:
    """The numbers of a range by what they mean: alert "above", "below", or inside "from" and "to".

    ``10`` alerts below 0 and above 10, of which the 0 is implied and left out; ``10:`` below 10, ``~:10``
    above 10, ``10:20`` outside, ``@10:20`` inside. Infinite ends are left out. Raises InvalidPerfdata.
    """
    match = _RANGE.fullmatch(text)
    if match is None or text in ("", "@"):
        raise InvalidPerfdata(text)
    low, high = ("from", "to") if match["inside"] else ("below", "above")
    ends = {low: match["start"] if match["start"] != "~" else None, high: match["end"]}
    return {name: float(number) for name, number in ends.items() if number is not None}


def metrics_of(items: list[Perfdatum]) -> external_metrics.MeasurementCollector:
    """The metrics of all *items*, in SI units."""
    measured = external_metrics.MeasurementCollector()
    for item in items:
        factor, unit = units.si_unit(item.unit)
        name = f"perfdata.{external_metrics.safe_name(item.label)}"
        if item.value is not None:
            measured.add(name, item.value * factor, unit)
        for bound, number in item.bounds.items():
            measured.add(f"{name}.{bound}", number * factor, unit)
    return measured
