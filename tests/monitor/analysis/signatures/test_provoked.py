"""Failures provoked here and now, by real programs and servers, have the signatures that they should.

The tables of ``provoked/`` have the commands. A test provokes the cases that need the same programs.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.analysis.signatures.shipped import shipped
from monitor.models.failure_signature import UNKNOWN
from tests.monitor.analysis.signatures.labelled_texts import labelled_texts
from tests.monitor.analysis.signatures.provoked.cases import Case, Group, cases_of, check, groups, tables
from tests.monitor.analysis.signatures.provoked.endpoints import endpoints
from tests.monitor.analysis.signatures.provoked.web import web_servers

ALL = [case for table in tables() for case in cases_of(table)]
AT_LEAST = 500


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Ports that do not serve, and web servers that refuse."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, contextlib.ExitStack() as running:
        Path(directory).chmod(0o755)
        yield {
            **running.enter_context(endpoints()),
            **running.enter_context(web_servers(Path(directory))),
        }


@pytest.mark.parametrize("group", groups("files"), ids=str)
def test_failures_of_file_systems_are_named(group: Group) -> None:
    check(group)


@pytest.mark.parametrize("group", groups("http"), ids=str)
def test_answers_of_web_servers_are_named(group: Group, servers: dict[str, str]) -> None:
    check(group, servers)


@pytest.mark.parametrize("group", groups("tls"), ids=str)
def test_faults_of_certificates_are_named(group: Group, servers: dict[str, str]) -> None:
    check(group, servers)


@pytest.mark.nightly
@pytest.mark.parametrize("group", groups("compilers", "languages", "programs"), ids=str)
def test_failures_of_programs_are_named(group: Group) -> None:
    check(group, {})


@pytest.mark.nightly
@pytest.mark.parametrize("group", groups("sockets"), ids=str)
def test_failures_of_connections_are_named(group: Group, servers: dict[str, str]) -> None:
    check(group, servers)


def test_the_tables_have_at_least_five_hundred_failures_of_most_signatures_and_of_none() -> None:
    assert len(ALL) >= AT_LEAST
    assert len({case.command for case in ALL}) == len(ALL)
    signatures = Counter(case.signature for case in ALL)
    assert set(signatures) <= {each.name for each in shipped()} | {UNKNOWN}
    assert 0.1 * len(ALL) <= signatures[UNKNOWN] <= 0.2 * len(ALL)
    assert len(ALL) + len(labelled_texts()) >= 1000


def test_a_case_knows_the_programs_that_it_needs() -> None:
    assert Case("no-such-file", "cat x | gcc -x c - && rsync a b").programs == ("gcc", "rsync")
