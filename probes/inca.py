"""Inca: run an Inca reporter and turn its report into outcome, metrics and log.

Inca 2 (inca.sdsc.edu) monitored TeraGrid and XSEDE. Its reporters are small programs that print an XML
document ``<rep:report>`` with ``gmt``, ``hostname``, ``name``, ``version``, ``args``, ``log``, ``body`` and
``exitStatus``. By the Inca User's Guide ("Reporter XML Schema"), ``completed`` is the verdict and
``errorMessage`` the reason. Every ``statistic`` in the body becomes the metric ``inca.<IDs of the enclosing
elements>.<ID>``; performance reporters put statistics in ``benchmark``. The log is appended to the run's log.

The XML is untrusted. The standard library's parser expands entities, so a few hundred bytes may grow to
gigabytes ("billion laughs") or include files of this host. Entities are declared in a DOCTYPE, which no Inca
report has, so a DOCTYPE is refused at its start. The numbers of bytes, elements and levels are limited, too.
Comments and processing instructions are ignored.
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
    """The text is no Inca report, or exceeds the limits."""


@dataclass
class Element:
    """An XML element.

    Attributes:
        name: the name without the namespace.
        text: pieces of the text, without the text of the children.
        children: the child elements in the order of the document.
    """

    name: str
    text: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        return (child for child in self.children if child.name == name)

    def text_of(self, *path: str) -> str | None:
        """Return the stripped text of the first element at *path*; None if no element is at *path*."""
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
    """The parts of an Inca report that the probe uses. *log* has pairs (text, level)."""

    name: str
    is_completed: bool
    error_message: str
    statistics: tuple[Statistic, ...]
    log: tuple[tuple[str, str], ...]


class Probe(external_program.ExternalProgramProbe):
    version = "1.0"
    summary = "Runs an Inca reporter: its report gives the verdict and the metrics."
    roles = {"target": Role(1, 1, "runs the reporter")}
    trial = {"command": f"echo '{_TRIAL}'"}
    stages = (
        Stage("init", "setup"),
        Stage("run_reporter", "compute"),
        Stage("verdict", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def run_reporter(self) -> list[Measurement]:
        """Run the Inca reporter; return the metrics of its report.

        A report that is "not completed" has metrics as well.
        """
        completed = self.run_program()
        try:
            self.report = parse_report(completed.stdout)
        except InvalidIncaReport as error:
            raise external_program.program_failed(
                f"{self.argv[0]} at {self.target} printed no Inca report: {error}", self.target, completed
            ) from None
        external_program.log_lines(self.grid, list(self.report.log))
        if self.report.is_completed and completed.returncode != 0:
            self.grid.log(f"completed, but with exit status {completed.returncode}", "warning")
        return self._metrics()

    def verdict(self) -> None:
        if not self.report.is_completed:
            reason = self.report.error_message or "not completed, without an error message"
            raise ProbeFailed(f"{self.report.name}: {reason}", resource=self.target)

    def _metrics(self) -> list[Measurement]:
        collector = external_metrics.MeasurementCollector()
        for statistic in self.report.statistics:
            factor, unit = units.si_unit(statistic.units)
            value = parse_number(statistic.value)
            if value is None:
                self.grid.log(f"not a number: {statistic.name} is {statistic.value[:100]!r}", "warning")
            else:
                collector.add(f"inca.{statistic.name}", value * factor, unit)
        return collector.collected(self.grid)


def parse_report(text: str) -> IncaReport:
    """Parse an Inca report.

    Raises:
        InvalidIncaReport: ``parse_xml`` refuses the text, or ``completed`` is no boolean.
    """
    root = parse_xml(text)
    completed = root.text_of("exitStatus", "completed")
    if completed not in ("true", "false", "1", "0"):  # the booleans of XML Schema
        raise InvalidIncaReport(f"exitStatus/completed: expected true or false, got {completed!r}")
    return IncaReport(
        name=root.text_of("name") or "an unnamed reporter",
        is_completed=completed in ("true", "1"),
        error_message=root.text_of("exitStatus", "errorMessage") or "",
        statistics=tuple(statistic for body in root.all("body") for statistic in _statistics(body, ())),
        log=tuple(_log_lines(root)),
    )


def parse_number(text: str) -> float | None:
    """Return *text* as a number; None if *text* is not a number."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _statistics(element: Element, names: tuple[str, ...]) -> Iterator[Statistic]:
    """Yield the statistics below *element*; *names* are the IDs of *element* and its ancestors."""
    for child in element.children:
        name = child.text_of("ID") or child.text_of("name")
        path = (*names, external_metrics.safe_name(name)) if name else names
        if child.name == "statistic":
            yield Statistic(
                ".".join(path) or "statistic", child.text_of("value") or "", child.text_of("units") or ""
            )
        else:
            yield from _statistics(child, path)


def _log_lines(root: Element) -> Iterator[tuple[str, str]]:
    for log in root.all("log"):
        for line in log.children:
            yield f"{line.name}: {line.text_of('message') or ''}", _LEVELS.get(line.name, "info")


def parse_xml(text: str) -> Element:
    """Parse *text* and return the root element.

    Raises:
        InvalidIncaReport: *text* is not well-formed XML, has a DOCTYPE, or exceeds a limit.
    """
    data = text.strip().encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise InvalidIncaReport(f"{len(data)} bytes, expected at most {MAX_BYTES}")
    builder = _TreeBuilder()
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")  # overrides the declared encoding
    parser.StartDoctypeDeclHandler = builder.doctype
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InvalidIncaReport(f"not XML: {error}") from None
    return builder.root


class _TreeBuilder:
    """The handlers of the XML parser: build the tree of elements and enforce the limits."""

    def __init__(self) -> None:
        self._open: list[Element] = []
        self._elements = 0

    def doctype(self, name: str, _system: object, _public: object, _internal: object) -> None:
        raise InvalidIncaReport(f"a DOCTYPE ({name[:50]}), which is not allowed")

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
