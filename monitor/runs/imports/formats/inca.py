"""Inca: concatenated XML reports of Inca reporters; the probe ``inca`` reads the same format from a program.

``hostname`` and ``name`` select the series. ``gmt`` is the slot. It is also the time when the values became
known, because a report does not give its duration. Arguments become parameters, except general arguments that
do not change what is measured. A file may contain many reports; each ends with its closing tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import Example, ImportedRun, InvalidField, Item, Option, Unreadable
from probes import inca
from probes.base import Measurement, Value
from probes.common.external_metrics import MAX_METRICS, safe_name
from probes.common.units import si_unit

_END = re.compile(rb"</(?:[\w.-]+:)?report\s*>")
_CHUNK_BYTES = 1 << 16
_GENERAL_ARGUMENTS = ("help", "log", "verbose", "version")
_ARGUMENT_CHARACTERS = 500


class Importer:
    summary = "Inca report XML, one or many per file; one series per host and reporter."
    measures = "grid"
    options: Mapping[str, Option] = {}
    example = Example(
        b'<rep:report xmlns:rep="http://inca.sdsc.edu/dataModel/report_2.1"><gmt>2006-03-01T12:00:00Z</gmt>'
        b"<hostname>login1.example.org</hostname><name>grid.wget.unit</name><version>2</version>"
        b"<args><arg><name>page</name><value>http://example.org/</value></arg></args>"
        b"<body><performance><ID>wget</ID><benchmark><ID>page</ID><statistics><statistic><ID>time</ID>"
        b"<value>420</value><units>ms</units></statistic></statistics></benchmark></performance></body>"
        b"<exitStatus><completed>true</completed></exitStatus></rep:report>\n"
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        pass

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for place, document in enumerate(_documents(stream), start=1):
            where = f"report {place}"
            try:
                yield _run(where, document)
            except inca.InvalidIncaReport as error:
                yield InvalidField("report", "an Inca report", error).at(where)
            except InvalidField as error:
                yield error.at(where)


def _documents(stream: BinaryIO) -> Iterator[str]:
    """Yield the text of each report. Raises Unreadable if text other than spaces follows the last report."""
    rest = b""
    number = 0
    while chunk := stream.read(_CHUNK_BYTES):
        rest += chunk
        while end := _END.search(rest):
            number += 1
            yield rest[: end.end()].decode("utf-8", "replace")
            rest = rest[end.end() :]
        if len(rest) > inca.MAX_BYTES and rest.strip():
            raise Unreadable(
                f"report {number + 1}: expected an Inca report of at most {inca.MAX_BYTES} bytes"
            )
        rest = rest.lstrip()
    if rest:
        raise Unreadable(
            f"report {number + 1}: expected an Inca report, </report> at its end; got {rest[:60]!r}"
        )


def _run(where: str, document: str) -> ImportedRun:
    report = inca.parse_report(document)
    root = inca.parse_xml(document)
    host = root.text_of("hostname") or ""
    arguments = {
        name: (arg.text_of("value") or "")[:_ARGUMENT_CHARACTERS]
        for args in root.all("args")
        for arg in args.all("arg")
        if (name := arg.text_of("name") or "") and name not in _GENERAL_ARGUMENTS
    }
    parameters: dict[str, Value] = {
        "reporter": report.name,
        "version": root.text_of("version") or "",
        **arguments,
    }
    return ImportedRun(
        where,
        text.time("gmt", root.text_of("gmt") or ""),
        0.0,
        list(_metrics(report)),
        series=text.slug(f"{host}-{report.name}" if host else report.name),
        parameters=parameters,
        outcome="passed" if report.is_completed else "failed",
        reason=report.error_message,
        resource=text.slug(host),
    )


def _metrics(report: inca.IncaReport) -> Iterator[Measurement]:
    """Yield the numeric statistics; if several statistics have the same name, only the first."""
    seen: set[str] = set()
    for statistic in report.statistics:
        name = f"inca.{safe_name(statistic.name)}"
        factor, unit = si_unit(statistic.units)
        if name in seen or len(seen) >= MAX_METRICS:
            continue
        try:
            value = text.number(statistic.name, statistic.value, factor)
        except InvalidField:
            continue
        seen.add(name)
        yield Measurement(name, value, unit)
