"""An invalid file is refused with one line per error, and nothing of it is applied."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitor.core.yamlfile.reading import MAX_BYTES
from monitor.models import Site
from tests.monitor.operations.gridfile.conftest import DATA, GridCommand

WITHOUT_CHANGE = ("SELECT ", "SAVEPOINT ", "ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT ")
BROKEN = yaml.load((DATA / "broken.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

NOT_GRID_FILES = {
    "nothing": (b"", '1:1: the file is empty; expected "version: 1" and the sections of the grid'),
    "a comment": (b"# later\n", '1:1: the file is empty; expected "version: 1" and the sections of the grid'),
    "a text": (b"version 1\n", '1:1: expected a mapping that begins with "version: 1"'),
    "a list": (b"- version: 1\n", '1:1: expected a mapping that begins with "version: 1"'),
    "a picture": (b"\x89PNG\r\n\x1a\n", "1:1: byte 0x89 is not UTF-8"),
    "Latin-1": (b"version: 1\nsites:\n  a: {title: Z\xfcrich}\n", "3:15: byte 0xfc is not UTF-8"),
    "a NUL": (b"version: 1\nsites:\0\n", "2:7: character U+0000 is not allowed"),
    "UTF-16": ("version: 1".encode("utf-16-le"), "1:2: character U+0000 is not allowed"),
    "brackets without end": (b"[" * 100_000, "1:21: nested more than 20 deep"),
    "braces without end": (b'{"a":' * 100_000, "1:101: nested more than 20 deep"),
}

BILLION_LAUGHS = "version: 1\n" + "".join(
    f"l{i}: &l{i} [{', '.join(['ha' if i == 0 else f'*l{i - 1}'] * 10)}]\n" for i in range(12)
)
# Each list contains the previous one: few nodes, great depth.
CHAIN = "version: 1\n" + "".join(f"l{i}: &l{i} [[[{f'*l{i - 1}' if i else 'ha'}]]]\n" for i in range(2000))
# A list of a thousand items, a thousand times.
SQUARE = f"version: 1\nline: &l [{', '.join('a' * 1000)}]\nsquare: [{', '.join(['*l'] * 1000)}]\n"


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["name"])
def test_a_broken_file_is_refused_with_its_error_and_changes_nothing(
    grid: GridCommand, whole: str, operators: Group, tmp_path: Path, case: dict[str, str]
) -> None:
    assert case["replace"] in whole
    file = tmp_path / "grid.yaml"
    file.write_text(whole.replace(case["replace"], case["by"], 1), encoding="utf-8")
    with CaptureQueriesContext(connection) as queries:
        assert grid("apply", file) == (1, f"{file}:{case['says']}\n")
    assert [query["sql"] for query in queries if not query["sql"].startswith(WITHOUT_CHANGE)] == []


def test_the_broken_files_cover_a_hundred_distinct_errors() -> None:
    assert len({case["says"] for case in BROKEN}) >= 100


def test_the_file_before_the_changes_is_valid(grid: GridCommand, operators: Group) -> None:
    assert grid("validate", DATA / "whole.yaml") == (
        0,
        "Valid: 2 sites, 2 resources, 2 reporters, 1 suites, 7 series, 3 maintenance, 4 alerts,"
        " 2 availability_profiles, 2 signatures, 2 webhooks.\n",
    )


@pytest.mark.parametrize("what", NOT_GRID_FILES)
@pytest.mark.django_db
def test_a_file_that_is_not_a_grid_file_is_refused(grid: GridCommand, tmp_path: Path, what: str) -> None:
    content, says = NOT_GRID_FILES[what]
    (tmp_path / "grid.yaml").write_bytes(content)
    assert grid("apply", tmp_path / "grid.yaml") == (1, f"{tmp_path / 'grid.yaml'}:{says}\n")


@pytest.mark.parametrize(
    ("bomb", "says"),
    [
        (BILLION_LAUGHS, "7:25: more than 500,000 values after expansion of aliases"),
        (CHAIN, "8:12: nested more than 20 deep"),
        (SQUARE, "3:2002: more than 500,000 values after expansion of aliases"),
    ],
    ids=["a billion laughs", "a chain of aliases", "the square of a list"],
)
@pytest.mark.django_db
def test_an_expansion_bomb_is_refused_at_its_limit(
    grid: GridCommand, tmp_path: Path, bomb: str, says: str
) -> None:
    (tmp_path / "grid.yaml").write_text(bomb, encoding="utf-8")
    assert grid("apply", tmp_path / "grid.yaml") == (1, f"{tmp_path / 'grid.yaml'}:{says}\n")


@pytest.mark.django_db
def test_a_file_of_50_megabytes_is_refused_without_reading_all_of_it(
    grid: GridCommand, tmp_path: Path
) -> None:
    file = tmp_path / "grid.yaml"
    with file.open("wb") as stream:
        stream.truncate(50_000_000)
    assert grid("apply", file) == (1, f"{file}:1:1: the file is larger than {MAX_BYTES:,} bytes\n")
    # A file without an end: the test would not end if all of it were read.
    assert grid("apply", "/dev/zero") == (1, f"/dev/zero:1:1: the file is larger than {MAX_BYTES:,} bytes\n")


def test_all_errors_are_reported_at_once_by_line(
    grid: GridCommand, whole: str, operators: Group, tmp_path: Path
) -> None:
    broken = (
        whole.replace("    site: anl", "    site: ann")
        .replace("kind: pbs", "kind: bps")
        .replace("probe: gather", "probe: gater")
        .replace("enabled: true", "enabled: off")
        .replace("limit_seconds", "limit")
        .replace("probe: login", "probe: logon")
    )
    (tmp_path / "grid.yaml").write_text(broken, encoding="utf-8")
    status, output = grid("validate", tmp_path / "grid.yaml")
    lines = [line.removeprefix(f"{tmp_path / 'grid.yaml'}:").split(":")[0] for line in output.splitlines()]
    assert (status, lines) == (1, ["7", "11", "23", "34", "35", "39"])


def test_an_error_in_a_resource_is_not_repeated_for_the_series_bound_to_it(
    grid: GridCommand, whole: str, operators: Group, tmp_path: Path
) -> None:
    (tmp_path / "grid.yaml").write_text(whole.replace("    site: sdsc\n", ""), encoding="utf-8")
    assert len(grid("validate", tmp_path / "grid.yaml")[1].splitlines()) == 1


def test_an_error_in_a_macro_is_reported_once(
    grid: GridCommand, whole: str, operators: Group, tmp_path: Path
) -> None:
    (tmp_path / "grid.yaml").write_text(whole.replace("probe: login", "probe: logon"), encoding="utf-8")
    assert len(grid("validate", tmp_path / "grid.yaml")[1].splitlines()) == 1


@pytest.mark.django_db
def test_words_with_a_meaning_in_yaml_1_1_are_valid_names(grid: GridCommand, tmp_path: Path) -> None:
    names = ["no", "on", "2005", "null", "1e3", "2005-03-01"]
    file = tmp_path / "grid.yaml"
    file.write_text("version: 1\nsites:\n" + "".join(f"  {name}:\n" for name in names), encoding="utf-8")
    assert grid("apply", file)[0] == 0
    assert set(Site.objects.values_list("name", flat=True)) == set(names)


@pytest.mark.django_db
def test_a_missing_file_is_reported_by_name(tmp_path: Path, grid: GridCommand) -> None:
    with pytest.raises(Exception, match=r"nowhere\.yaml: No such file or directory"):
        grid("plan", tmp_path / "nowhere.yaml")
    with pytest.raises(Exception, match="Is a directory"):
        grid("plan", tmp_path)


@pytest.mark.django_db
def test_a_file_can_be_validated_without_a_depot(grid: GridCommand, tmp_path: Path, whole: str) -> None:
    strange = whole.replace("reporter: home", "reporter: another")
    (tmp_path / "grid.yaml").write_text(strange, encoding="utf-8")
    assert grid("validate", "--alone", tmp_path / "grid.yaml")[0] == 0
    status, output = grid("validate", tmp_path / "grid.yaml")
    assert status == 1
    assert 'there is no user group "operators"' in output
    assert 'there is no reporter "another"' in output
