"""Remove from reports and status what a site does not disclose. The result is always a report, version 1.

redacted: hosts, users, paths and addresses are pseudonyms; the texts of logs and stderr are withheld. Words
    are recognised by their form and by a list, so an unusual user name in an error message may remain.
minimal: ids, times, numbers and the outcome. No text that a program or the site wrote remains.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import probes
from probes.base import UnknownProbe
from probes.common.external_program import ExternalProgramProbe
from reporters.config import ResourceConfig
from reporters.remote.policy import options
from reporters.remote.policy.hosts import UnknownHost, parse_contact, parse_hops, parse_host
from reporters.remote.policy.pseudonyms import Pseudonyms
from reporters.remote.policy.site_policy import FULL, PREFIX, UNREADABLE
from reporters.report import Environment, Failure, MalformedReport, MetricValue, Report, to_json
from reporters.truncate import Unwritable, encoded

WITHHELD = "withheld by the site's policy"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)
_UNITS = frozenset(("seconds", "bytes", "bytes_per_second", "ratio", "count"))
_LONGEST_NAME = 200


class Disclosure:
    """Discloses at *level*: "full", "redacted" or "minimal".

    Args:
        secret: of the pseudonyms, as ``pseudonyms.secret_of`` returns it.
        words: the kinds of words that are replaced wherever they occur, as ``known_words`` returns them.
    """

    def __init__(self, level: str, secret: bytes, words: Mapping[str, str]) -> None:
        self.level = level
        self._pseudonyms = Pseudonyms(secret, words)

    def report(self, report: Report) -> bytes:
        """Return the JSON of *report* as the site discloses it.

        Raises:
            MalformedReport: *report* has no JSON form, or is too large.
        """
        if self.level == FULL:
            return to_json(report)
        if self.level == "redacted":
            try:
                return to_json(_redacted(report, self._pseudonyms))
            except MalformedReport:  # pseudonyms are longer than some texts
                return to_json(_minimal(report, self._pseudonyms))
        return to_json(_minimal(report, self._pseudonyms))

    def status(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return *document*, the JSON of an exchange, as the site discloses it."""
        if self.level == FULL:
            return dict(document)
        text = self._pseudonyms.in_text if self.level == "redacted" else _withheld
        return {
            **document,
            "hostname": self._pseudonyms.of("host", document["hostname"]),
            "assignment": {**document["assignment"], "error": text(document["assignment"]["error"])},
            "messages": [{**message, "text": text(message["text"])} for message in document["messages"]],
        }


def disclose(report: Report, level: str, *, secret: bytes, words: Mapping[str, str]) -> bytes:
    """Return the JSON of *report* as a site with disclosure *level* sends it; see ``Disclosure``."""
    return Disclosure(level, secret, words).report(report)


def known_words(resources: Iterable[ResourceConfig]) -> dict[str, str]:
    """Return the kind of each name that this host, its user and the *resources* of its runs have."""
    hosts = {os.uname().nodename} - {""}
    users = _own_names()
    for resource in resources:
        hosts.update(_hosts(resource))
        users.update(
            str(getattr(resource, method)["user"])
            for method in ("shell", "transfer")
            if getattr(resource, method).get("user")
        )
    short = {host.partition(".")[0] for host in hosts if not host[0].isdigit() and ":" not in host}
    return {
        **{name: "host" for name in (*hosts, *short - set(probes.names())) if name},
        **dict.fromkeys(users, "user"),
    }


def _own_names() -> set[str]:
    try:
        return {getpass.getuser()}
    except (KeyError, OSError):  # a user without an entry in the user database, in a container
        return set()


def _hosts(resource: ResourceConfig) -> set[str]:
    named = [(options.HOST, resource.address)]
    named += [(option.meaning, option.value) for option in options.options(resource, options.ADDRESSES)]
    return {host for meaning, value in named for host in _hosts_in(meaning, value)} - {""}


def _hosts_in(meaning: str, value: object) -> list[str]:
    try:
        if meaning == options.HOPS:
            return [str(host) for host in parse_hops(value)]
        return [str(parse_contact(value) if meaning == options.CONTACT else parse_host(value))]
    except UnknownHost:
        return [str(value)]


def _withheld(text: str) -> str:
    return WITHHELD if text else ""


def _redacted(report: Report, names: Pseudonyms) -> Report:
    environment = report.environment
    return replace(
        report,
        parameters={name: _deep(value, names.in_text) for name, value in report.parameters.items()},
        reason=report.reason if _tells_hours(report) else names.in_text(report.reason),
        metrics=_renamed(report.metrics, names.of_words, names.of_words, names),
        failure=_redacted_failure(report, names),
        log=tuple(replace(line, text=_withheld(line.text)) for line in report.log),
        environment=Environment(
            hostname=names.of("host", environment.hostname) if environment.hostname else "",
            kernel=names.in_text(environment.kernel),
            python=names.in_text(environment.python),
            tools={names.of_words(name): names.in_text(text) for name, text in environment.tools.items()},
        ),
        extra={},
    )


def _tells_hours(report: Report) -> bool:
    """Return whether the reason is a rule on hours: the name of its time zone looks like a path."""
    return report.outcome == "skipped" and report.reason.startswith(f"{PREFIX}forbidden hours ")


def _redacted_failure(report: Report, names: Pseudonyms) -> Failure | None:
    failure = report.failure
    if failure is None:
        return None
    return replace(
        failure,
        resource=_bound(report, failure.resource),
        message=names.in_text(failure.message),
        stderr_tail=_withheld(failure.stderr_tail),
    )


def _minimal(report: Report, names: Pseudonyms) -> Report:
    failure = report.failure

    def safe(kind: str) -> Callable[[str], str]:
        return lambda name: name if _NAME.fullmatch(name) else names.of(kind, name)

    is_free = _names_metrics_freely(report)
    return replace(
        report,
        parameters={
            safe("parameter")(name): _number_or(value, names) for name, value in report.parameters.items()
        },
        reason=_minimal_reason(report.reason),
        stages=tuple(replace(stage, name=safe("stage")(stage.name)) for stage in report.stages),
        metrics=_renamed(
            report.metrics,
            (lambda name: names.of("metric", name)) if is_free else safe("metric"),
            (lambda unit: unit if unit in _UNITS else names.of("unit", unit)) if is_free else safe("unit"),
            names,
        ),
        failure=failure
        and Failure(
            safe("stage")(failure.stage), _bound(report, failure.resource), WITHHELD, failure.exit_status
        ),
        log=(),
        environment=Environment("", "", ""),
        usage={name: used for name, used in report.usage.items() if _bound(report, name)},
        extra={},
    )


def _minimal_reason(reason: str) -> str:
    """Return that the policy refused the run, if it did, and no more."""
    if not reason.startswith(PREFIX):
        return ""
    return UNREADABLE if reason.startswith(UNREADABLE) else f"{PREFIX}not disclosed"


def _names_metrics_freely(report: Report) -> bool:
    """Return whether the names of the metrics come from a program, as those of a Nagios plugin do."""
    try:
        return issubclass(probes.load(report.probe.name), ExternalProgramProbe)
    except UnknownProbe:
        return True


def _bound(report: Report, resource: str | None) -> str | None:
    """Return *resource* if it is bound to a role, and so known to the server."""
    return resource if any(resource in bound for bound in report.bindings.values()) else None


def _number_or(value: object, names: Pseudonyms) -> object:
    """Return a number, true or false unchanged; of other values the pseudonym, which changes with them."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    try:
        return names.of("text", encoded(value).decode())
    except Unwritable:
        return ""


def _deep(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {str(name): _deep(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_deep(item, change) for item in value]
    return value


def _renamed(
    metrics: Sequence[MetricValue],
    rename: Callable[[str], str],
    unit_of: Callable[[str], str],
    names: Pseudonyms,
) -> tuple[MetricValue, ...]:
    """Return *metrics* with other names, which stay unique, and other units."""
    renamed: dict[str, MetricValue] = {}
    for metric in metrics:
        name = rename(metric.name)
        if name in renamed or len(name) > _LONGEST_NAME:
            name = names.of("metric", metric.name)
        unit = unit_of(metric.unit)
        if len(unit) > _LONGEST_NAME:
            unit = names.of("unit", metric.unit)
        renamed[name] = MetricValue(name, metric.value, unit)
    return tuple(renamed.values())
