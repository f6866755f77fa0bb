"""Nagios: run a Nagios plugin and turn its exit status and output into outcome, metrics and log.

The Monitoring Plugins Development Guidelines (monitoring-plugins.org/doc/guidelines.html) define output,
thresholds and performance data (perfdata) of plugins. The exit status decides the outcome:

- 0 (OK): passed; 1 (WARNING): passed, with a warning in the log.
- 2 (CRITICAL): failed; the first line of output is the reason.
- 3 (UNKNOWN): no data. The plugin could not check the service, for example because of wrong arguments, so its
  result says nothing about the service.
- Any other status, and a plugin that is missing, was killed or exceeded its time limit: failed.

Output is ``TEXT | PERFDATA``, then lines of long text, then optionally ``|`` and more perfdata. An item of
perfdata is ``'label'=value[UOM];[warn];[crit];[min];[max]``. The value becomes the metric
``perfdata.<label>`` in SI units. The limits in the item become metrics with a suffix: ``.min``, ``.max`` and
the thresholds. The plugin warns above ``.warn.above`` and below ``.warn.below``, or, for a range like
``@10:20``, from ``.warn.from`` to ``.warn.to``; critical thresholds have ``.crit`` instead of ``.warn``.
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
# Unambiguous, so that matching takes linear time.
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_ITEM = re.compile(r"(?:[^\s']|'(?:[^']|'')*'?)+")  # up to an unquoted space
_PAIR = re.compile(r"(?:'(?P<quoted>.*)'|(?P<plain>[^'=]+))=(?P<rest>[^=]*)", re.DOTALL)
# No digits in the unit: "1,5" must not match as 1.
_VALUE = re.compile(rf"(?P<number>{_NUMBER}|U)(?P<unit>[^\d;'\"]*)")
_RANGE = re.compile(rf"(?P<inside>@?)(?:(?P<start>~|{_NUMBER})?:)?(?P<end>{_NUMBER})?")


class InvalidPerfdata(ValueError):
    """An item of perfdata does not follow the guidelines."""


@dataclass(frozen=True)
class Output:
    """The parts of a plugin's output: its first line, the lines of long text, and all perfdata."""

    summary: str
    long_text: tuple[str, ...]
    perfdata: str


@dataclass(frozen=True)
class Perfdatum:
    """One item of perfdata.

    Attributes:
        label: the name of the value.
        value: the value in *unit*; None for "U" (undetermined).
        unit: the unit as the plugin writes it.
        bounds: the limits by the suffix of their metric, such as "warn.above".
    """

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
        """Run the plugin; return its metrics, even if its exit status means failure."""
        self.completed = self.run_program()
        self.output = parse_output(self.completed.stdout)
        self._log()
        items, invalid = parse_perfdata(self.output.perfdata)
        warnings = [(f"invalid perfdata: {item!r}", "warning") for item in invalid]
        external_program.log_lines(self.grid, warnings)
        status = Measurement("nagios.status", self.completed.returncode, "status")
        return [status, *metrics_of(items).collected(self.grid)]

    def verdict(self) -> None:
        check_exit_status(self.output.summary, self.completed, self.argv[0], self.target)

    def _log(self) -> None:
        level = "warning" if self.completed.returncode == WARNING else "info"
        long_text = [(line, "info") for line in self.output.long_text]
        external_program.log_lines(self.grid, [(self.output.summary or "(no output)", level), *long_text])


def check_exit_status(summary: str, completed: Completed, program: str, target: str) -> None:
    """Raise NoData or ProbeFailed unless the exit status is OK or WARNING.

    *summary* is the first line of output, the reason in the error.
    """
    text = summary or "(no output)"
    if completed.returncode == UNKNOWN:
        raise NoData(f"{program} returned UNKNOWN at {target}: {text}")
    if completed.returncode == CRITICAL:
        raise external_program.program_failed(text, target, completed)
    if completed.returncode not in (OK, WARNING):
        raise external_program.program_failed(
            f"{program} ended with the unknown exit status {completed.returncode}: {text}",
            target,
            completed,
        )


def parse_output(text: str) -> Output:
    """Split *text*, the output of a plugin, into its parts; any text is valid."""
    first, *others = text.splitlines() or [""]
    summary, _, perfdata = first.partition("|")
    before, _, after = "\n".join(others).partition("|")
    long_text = tuple(line.rstrip() for line in before.splitlines() if line.strip())
    return Output(summary.strip(), long_text, f"{perfdata}\n{after}".strip())


def parse_perfdata(text: str) -> tuple[list[Perfdatum], list[str]]:
    """Return the valid items of perfdata, in order, and the texts of the invalid items."""
    texts = _ITEM.findall(text[:_MAX_PERFDATA_CHARACTERS])
    items = [(item_text, _item_or_none(item_text)) for item_text in texts]
    valid = [item for _, item in items if item is not None]
    return valid, [item_text for item_text, item in items if item is None]


def _item_or_none(text: str) -> Perfdatum | None:
    try:
        return parse_item(text)
    except InvalidPerfdata:
        return None


def parse_item(text: str) -> Perfdatum:
    """Parse one item of perfdata, such as ``'disk /'=12MB;~:80;@90:95;0;100``.

    Raises:
        InvalidPerfdata: *text* does not have this form.
    """
    pair = _PAIR.fullmatch(text)
    if pair is None:
        raise InvalidPerfdata(text)
    value_text, *bounds = pair["rest"].split(";")
    value = _VALUE.fullmatch(value_text)
    if value is None or len(bounds) > 4:
        raise InvalidPerfdata(text)
    label = pair["plain"] if pair["quoted"] is None else pair["quoted"].replace("''", "'")
    number = None if value["number"] == "U" else float(value["number"])
    return Perfdatum(label, number, value["unit"].strip(), _bounds([*bounds, "", "", "", ""][:4]))


def _bounds(texts: list[str]) -> dict[str, float]:
    warn, crit, minimum, maximum = (text.strip() for text in texts)
    ranges = [(name, parse_range(text)) for name, text in (("warn", warn), ("crit", crit)) if text]
    bounds = {f"{name}.{end}": number for name, ends in ranges for end, number in ends.items()}
    limits = [(name, text) for name, text in (("min", minimum), ("max", maximum)) if text]
    try:
        return {**bounds, **{name: float(text) for name, text in limits}}
    except ValueError as error:
        raise InvalidPerfdata(str(error)) from None


def parse_range(text: str) -> dict[str, float]:
    """Parse a threshold range into limits: "above" and "below", or "from" and "to" for alerts inside it.

    ``10:`` alerts below 10, ``~:10`` above 10, ``10:20`` outside the range, ``@10:20`` inside. ``10`` alerts
    above 10 and below 0. The result has neither this implied 0 nor infinite limits.

    Raises:
        InvalidPerfdata: *text* is no range.
    """
    match = _RANGE.fullmatch(text)
    if match is None or text in ("", "@"):
        raise InvalidPerfdata(text)
    low, high = ("from", "to") if match["inside"] else ("below", "above")
    ends = {low: match["start"] if match["start"] != "~" else None, high: match["end"]}
    return {name: float(number) for name, number in ends.items() if number is not None}


def metrics_of(items: list[Perfdatum]) -> external_metrics.MeasurementCollector:
    """Return a collector with the values and limits of all *items*, in SI units."""
    collector = external_metrics.MeasurementCollector()
    for item in items:
        factor, unit = units.si_unit(item.unit)
        name = f"perfdata.{external_metrics.safe_name(item.label)}"
        if item.value is not None:
            collector.add(name, item.value * factor, unit)
        for bound, number in item.bounds.items():
            collector.add(f"{name}.{bound}", number * factor, unit)
    return collector
