"""Inca: any executable that prints an Inca report is a series.

Inca 2 (inca.sdsc.edu) watched TeraGrid and XSEDE. Its reporters are small programs that print an XML document
``<rep:report>`` of ``gmt``, ``hostname``, ``name``, ``version``, ``args``, ``log``, ``body``, ``exitStatus``.
By the Inca User's Guide ("Reporter XML Schema") ``completed`` is the verdict and ``errorMessage`` the reason.
A ``statistic`` anywhere in the body, which performance reporters have below ``benchmark``, is the metric
``inca.<IDs of what it is in>.<ID>``; lines of the log go to the run's log.

The XML is text from outside. The standard library's parser expands entities: that is how a few hundred bytes
become gigabytes (a "billion laughs"), or ask for files of this host. Entities are declared in a DOCTYPE. No
Inca report has one, so it is refused where it begins, before anything in it is looked at. Beyond that the
bytes, the elements and their depth are limited; comments and processing instructions are not looked at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from probes.base import Measurement, ProbeFailed, Role, Stage
from probes.common import external_metrics, external_program, units

MAX_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_ELEMENTS = 50_000
_ROOT = "report"
_LEVELS = {"debug": "debug", "error": "error", "info": "info", "system": "debug", "warn": "warning"}
_TRIAL = (
    '<rep:report xmlns:rep="http://inca.sdsc.edu/dataModel/report_2.1"><name>trial</name>'
    "<body><performance><ID>trial</ID><benchmark><ID>fine</ID><statistics><statistic><ID>time</ID>"
    "<value>0.5</value><units>s</units></statistic></statistics></benchmark></performance></body>"
    "<exitStatus><completed>true</completed></exitStatus></rep:report>"
)


class InvalidIncaReport(ValueError):
    """No Inca report, or one that is not safe to read."""


@dataclass
class Element:
    """An XML element: *name* without its namespace, *text* in pieces, without that of its *children*."""

    name: str
    text: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        return (child for child in self.children if child.name == name)

    def text_of(self, *path: str) -> str | None:
        """The text of the first element at *path*, stripped; None where there is none."""
        if not path:
            return "".join(self.text).strip()
        return next((child.text_of(*path[1:]) for child in self.all(path[0])), None)


@dataclass(frozen=True)
class Statistic:
    name: str
    value: str
    units: str


@dataclass(frozen=True)
class IncaReport:
    """What of an Inca report is used. *log* has (text, level)."""

    name: str
    completed: bool
    error_message: str
    statistics: tuple[Statistic, ...]
    log: tuple[tuple[str, str], ...]


class Probe(external_program.ExternalProgramProbe):
    version = "1.0"
    summary = "Runs an Inca reporter: its report says whether it completed and what it measured."
    roles = {"target": Role(1, 1, "runs the reporter")}
    trial = {"command": f"echo '{_TRIAL}'"}
    stages = (
        Stage("init", "setup"),
        Stage("run_reporter", "compute"),
        Stage("verdict", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def run_reporter(self) -> list[Measurement]:
        """The metrics, also of a reporter that did not complete: what it has measured counts."""
        self.done = self.run_program()
        try:
            self.report = parse_report(self.done.stdout)
        except InvalidIncaReport as error:
            raise external_program.program_failed(
                f"{self.argv[0]} at {self.target} printed no Inca report: {error}", self.target, self.done
            ) from None
        external_program.log_lines(self.grid, list(self.report.log))
        if self.report.completed and self.done.returncode != 0:
            self.grid.log(f"it completed, but ended with exit status {self.done.returncode}", "warning")
        return self._metrics()

    def verdict(self) -> None:
        if not self.report.completed:
            said = self.report.error_message or "it did not complete, and does not say why"
            raise ProbeFailed(f"{self.report.name}: {said}", resource=self.target)

    def _metrics(self) -> list[Measurement]:
        measured = external_metrics.MeasurementCollector()
        for statistic in self.report.statistics:
            factor, unit = units.si_unit(statistic.units)
            value = number(statistic.value)
            if value is None:
                self.grid.log(f"no number: {statistic.name} is {statistic.value[:100]!r}", "warning")
            else:
                measured.add(f"inca.{statistic.name}", value * factor, unit)
        return measured.collected(self.grid)


def parse_report(text: str) -> IncaReport:
    """Parse an Inca report. Raises InvalidIncaReport."""
    root = parse_xml(text)
    completed = root.text_of("exitStatus", "completed")
    if completed not in ("true", "false", "1", "0"):  # what XML Schema calls a boolean
        raise InvalidIncaReport(f"exitStatus/completed: expected true or false, got {completed!r}")
    return IncaReport(
        name=root.text_of("name") or "an unnamed reporter",
        completed=completed in ("true", "1"),
        error_message=root.text_of("exitStatus", "errorMessage") or "",
        statistics=tuple(found for body in root.all("body") for found in _statistics(body, ())),
        log=tuple(_log(root)),
    )


def number(text: str) -> float | None:
    """The number that *text* is, if it is one."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _statistics(element: Element, names: tuple[str, ...]) -> Iterator[Statistic]:
    """All below *element*, which lies in elements with these *names*."""
    for child in element.children:
        name = child.text_of("ID") or child.text_of("name")
        inner = (*names, external_metrics.safe_name(name)) if name else names
        if child.name == "statistic":
            yield Statistic(
                ".".join(inner) or "statistic", child.text_of("value") or "", child.text_of("units") or ""
            )
        else:
            yield from _statistics(child, inner)


def _log(root: Element) -> Iterator[tuple[str, str]]:
    for log in root.all("log"):
        for line in log.children:
            yield f"{line.name}: {line.text_of('message') or ''}", _LEVELS.get(line.name, "info")


def parse_xml(text: str) -> Element:
    """The root of an Inca report as a tree. Raises InvalidIncaReport."""
    data = text.strip().encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise InvalidIncaReport(f"{len(data)} bytes, expected at most {MAX_BYTES}")
    tree = _Tree()
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")  # whatever the document says of itself
    parser.StartDoctypeDeclHandler = tree.doctype
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.data
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InvalidIncaReport(f"no XML: {error}") from None
    return tree.root


class _Tree:
    """What the parser calls; refuses all that an Inca report does not have."""

    def __init__(self) -> None:
        self._open: list[Element] = []
        self._elements = 0

    def doctype(self, name: str, _system: object, _public: object, _internal: object) -> None:
        raise InvalidIncaReport(f"a DOCTYPE ({name[:50]}), which no report has")

    def start(self, name: str, _attributes: object) -> None:
        element = Element(name.rpartition(" ")[2])
        self._elements += 1
        if len(self._open) >= MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise InvalidIncaReport(f"more than {MAX_DEPTH} levels or {MAX_ELEMENTS} elements")
        if self._open:
            self._open[-1].children.append(element)
        elif element.name != _ROOT:
            raise InvalidIncaReport(f"the root is {element.name[:50]!r}, expected {_ROOT!r}")
        else:
            self.root = element
        self._open.append(element)

    def end(self, _name: str) -> None:
        self._open.pop()

    def data(self, text: str) -> None:
        self._open[-1].text.append(text)
