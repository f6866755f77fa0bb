"""Every example of CONTRIBUTING.md works as a new file in a copy of the source, without any other edit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.contracts.source_copy import ROOT, copy_source, run_python

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = {path: code for code, path in re.findall(r"```python\n(# (\S+)\n.*?)```", TEXT, re.DOTALL)}
EXAMPLES |= {path: code for code, path in re.findall(r"```yaml\n(# (\S+)\n.*?)```", TEXT, re.DOTALL)}
EXAMPLES |= {path: code for code, path in re.findall(r"```html\n(\{# (\S+) #\}\n.*?)```", TEXT, re.DOTALL)}
ADDITION = re.compile(r"^\+\+\+ b/(?P<file>\S+)\n@@.*\n\+(?P<added>.*)\n (?P<before>.*)$", re.MULTILINE)

# Uses each example whose contract suite needs a server of its kind.
USE = """
import os, sys, tempfile
from datetime import UTC, datetime
from pathlib import Path

import django

django.setup()
scratch = Path(tempfile.mkdtemp())

from probes.grid import CopyOptions
from reporters import batch, shells, transfers
from reporters.base import End
from reporters.config import ResourceConfig

here = ResourceConfig("here", "site", str(scratch))
shell = shells.load("polite")("here", "a run")
assert shell.run(["nice"], timeout_seconds=60).stdout == "19\\n"
(scratch / "a").write_bytes(b"x" * 1000)
transfer = transfers.load("dd")(End(here, shell), End(here, shell))
paths = str(scratch / "a"), str(scratch / "b")
assert transfer.copy(*paths, options=CopyOptions(), timeout_seconds=60).bytes == 1000
assert (scratch / "b").read_bytes() == b"x" * 1000
job = batch.load("background")(shell).submit(["true"], directory=str(scratch), cpus=1, wall_seconds=60)
assert job.wait_started(timeout_seconds=60) >= 0
assert job.wait_ended(timeout_seconds=60) >= 0
shell.close()

from monitor.depot.samples import formats
from monitor.depot.samples.formats.base import Value

noon = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
value = Value("total.seconds", noon, noon, 1.5, "seconds", "passed", 1)
assert b"".join(formats.load("gnuplot")("circle").chunks([value])) == b"# circle\\n1772366400.000000 1.5\\n"

import io

from monitor.imports import formats as imported

example = imported.load("durations").example
data = io.BytesIO(example.data + b"2006-02-27T14:00:00Z -1\\n")
runs = list(imported.create_importer("durations", {}).read(data))
assert [run.seconds for run in runs[:2]] == [94.31, 93.77]
assert (runs[2].field, runs[2].where) == ("duration", "line 3")

from monitor.alerts import channels
from monitor.alerts.channels.base import Message

file = scratch / "alerts"
message = Message("1", "opened", "rule", "circle", "it failed", noon, noon)
channels.notifier({"kind": "file", "path": str(file)}).send(message)
assert file.read_text() == "[gridcast] alert: circle: it failed\\n"

import uuid

from monitor.ledger.admission.base import AdmissionContext, Demand, DueRun, Skip
from monitor.ledger.admission import rules

judge = rules.load_all()["weekend"]
run = DueRun(uuid.uuid4(), Demand("gather", "office", "home", frozenset({"anl"})), noon)
assert isinstance(judge(run, AdmissionContext(noon, [], {}, {})), Skip)

from monitor.failures.classifier import Classifier, FailureText
from monitor.failures.loading import read
from monitor.failures.shipped import FOLDER, shipped

assert read((FOLDER / "tape.yaml").read_bytes(), "tape.yaml")[0] in shipped()
assert Classifier(shipped()).classify(FailureText("there is no free tape drive")).name == "tape-drive-missing"

from django.template.loader import get_template
from django.urls import reverse

from monitor.api import api

assert reverse("titles") == "/titles/"
get_template("pages/titles.html")
assert "/api/v1/usage" in api.get_openapi_schema()["paths"]
"""


@pytest.fixture(scope="module")
def source_with_examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the source, and write every example to the path in its first line."""
    directory = tmp_path_factory.mktemp("source")
    copy_source(directory)
    for path, code in EXAMPLES.items():
        assert not (directory / path).exists(), f"{path} exists: the example adds nothing"
        (directory / path).write_text(code.partition("\n")[2], encoding="utf-8")
    return directory


def test_contributing_has_an_example_for_every_kind_of_plug_in() -> None:
    folders = {str(Path(path).parent) for path in EXAMPLES}
    assert folders >= {
        "probes",
        "forecasting/methods",
        "reporters/transfers",
        "reporters/shells",
        "reporters/batch",
        "monitor/imports/formats",
        "monitor/depot/samples/formats",
        "monitor/alerts/channels",
        "monitor/alerts/conditions",
        "monitor/ledger/admission/rules",
        "monitor/pages",
        "templates/pages",
        "monitor/api",
    }


def test_the_contract_suites_find_the_examples_and_pass(source_with_examples: Path) -> None:
    suites = [f"tests/contracts/test_{kind}.py" for kind in ("probes", "forecasters", "conditions")]
    chosen = "knock or last_two or failures_in_ten"
    tested = run_python(
        source_with_examples,
        "-m",
        "pytest",
        *suites,
        "-k",
        chosen,
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    )
    assert tested.returncode == 0, tested.stdout
    passed = re.search(r"(\d+) passed", tested.stdout)
    assert passed is not None
    assert int(passed[1]) > 40


@pytest.mark.nightly
def test_the_other_examples_work(source_with_examples: Path) -> None:
    used = run_python(source_with_examples, "-W", "ignore", "-c", USE)
    assert used.returncode == 0, used.stderr


@pytest.mark.nightly
def test_a_new_probe_is_a_choice_of_a_series_without_a_migration(source_with_examples: Path) -> None:
    choices = "from monitor.admin import probe_choices; print(probe_choices())"
    listed = run_python(source_with_examples, "manage.py", "shell", "--no-imports", "-c", choices)
    assert "('knock', 'knock')" in listed.stdout, listed.stderr
    unchanged = run_python(source_with_examples, "manage.py", "makemigrations", "--check", "--dry-run")
    assert unchanged.returncode == 0, unchanged.stdout


@pytest.mark.nightly
def test_an_added_field_of_a_series_is_a_column_and_a_key_of_the_grid_file(
    source_with_examples: Path, tmp_path: Path
) -> None:
    widened = tmp_path / "widened"
    shutil.copytree(source_with_examples, widened)
    section = TEXT.partition("## Add a field of a series")[2]
    additions = list(ADDITION.finditer(section.partition("```\n\n")[0]))
    assert len(additions) == 3
    for addition in additions:
        file = widened / addition["file"]
        source = file.read_text(encoding="utf-8")
        assert addition["before"] in source
        at = source.rindex(addition["before"])
        file.write_text(f"{source[:at]}{addition['added']}\n{source[at:]}", encoding="utf-8")
    migrated = run_python(widened, "-W", "ignore", "manage.py", "makemigrations", "--dry-run")
    assert "Add field contact to series" in migrated.stdout, migrated.stderr
    schema = run_python(widened, "-W", "ignore", "manage.py", "grid", "schema")
    assert '"contact"' in schema.stdout, schema.stderr
