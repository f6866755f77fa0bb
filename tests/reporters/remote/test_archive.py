from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import probes
from reporters.remote import VERSION, archive, this_archive
from tests.reporters.remote.interpreters import SUPPORTED_MOSTLY_BY_NIGHT, TOO_OLD, interpreter

ROOT = Path(__file__).resolve().parents[3]
MOST_BYTES = 1_250_000  # the guide says 1.2 MB


def run(python: str, pyz: Path, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the archive isolated from the environment and from the packages of the interpreter."""
    return subprocess.run(
        [python, "-I", "-S", str(pyz), *argv],
        env={"PATH": os.defpath, "HOME": "/", "LANG": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_sources_give_the_same_bytes_whatever_their_dates_and_directory(tmp_path: Path) -> None:
    for package in archive.PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    for path in tmp_path.rglob("*"):
        os.utime(path, (time.time() + 1000, 1_000_000_000))
        if path.is_file():
            path.chmod(0o600)
    (tmp_path / "reporters" / "notes.txt").write_text("no source")
    assert archive.build(tmp_path) == archive.build()


def test_a_changed_source_is_another_version(tmp_path: Path) -> None:
    for package in archive.PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    (tmp_path / "probes" / "kernels" / "stream.c").write_text("")
    assert archive.digest(archive.build(tmp_path)) != archive.digest(archive.build())


def test_docstrings_become_blank_lines_and_all_else_stays() -> None:
    source = b'''"""A module,

of three lines."""
class Empty(Exception):
    """Has nothing else."""
@dataclass
class Point:
    x: int = 3
    y: int = 4
def unused():
    """Does nothing."""
def double(value):
    """Return twice *value*.

    It has: contracts.
    """
    return """no docstring""" and 2 * value
'''
    bare = archive.without_docstrings(source)
    assert bare.count(b"\n") == source.count(b"\n")
    names: dict[str, Any] = {"dataclass": dataclass}
    exec(compile(bare, "bare", "exec"), names)  # our own source
    assert (names["double"](4), names["double"].__doc__, names.get("__doc__")) == (8, None, None)
    assert (names["Empty"].__doc__, names["unused"].__doc__) == ("-", None)
    point = names["Point"](y=5)
    assert (point.x, point.y, point.__doc__) == (3, 5, "-")
    assert b"no docstring" in bare
    assert b"contracts" not in bare


def test_kernels_are_packed_without_comments_and_keep_their_lines() -> None:
    source = b"""/* one
 * two */
char *text = "no /* comment */ and // none", quote = '"'; // a comment "
int half(int x) { return x / 2; } /* a */ int y = 4 /* b */ / 2;
"""
    bare = [line.split() for line in archive.without_comments(source).splitlines()]
    assert bare[:2] == [[], []]
    assert bare[2] == b"""char *text = "no /* comment */ and // none", quote = '"';""".split()
    assert bare[3] == b"int half(int x) { return x / 2; } int y = 4 / 2;".split()


def test_it_is_small_and_has_no_byte_code() -> None:
    built = archive.build()
    names = zipfile.ZipFile(io.BytesIO(built)).namelist()
    assert len(built) < MOST_BYTES
    assert {Path(name).suffix for name in names} == {".py", ".c", ".h"}


@pytest.mark.parametrize("version", SUPPORTED_MOSTLY_BY_NIGHT)
def test_every_supported_python_runs_a_probe_without_packages(
    version: str, pyz: Path, tmp_path: Path
) -> None:
    """The probe compiles a kernel of the archive and submits a job."""
    done = run(interpreter(version), pyz, "once", "stream", "--trial", "--json", f"--scratch={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcome"] == "passed"
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("version", TOO_OLD)
def test_an_older_python_is_refused_in_one_sentence(version: str, pyz: Path) -> None:
    done = run(interpreter(version), pyz, "doctor")
    assert done.returncode == 1
    assert done.stderr.startswith("gridcast-reporter needs Python 3.9 or newer; ")
    assert done.stderr.count("\n") == 1


def test_every_module_of_the_archive_can_be_imported(pyz: Path) -> None:
    """Every module: a plug-in that only the service could import would fail at a site."""
    script = (
        "import pkgutil, sys; sys.path.insert(0, sys.argv[1]); import probes, reporters\n"
        "for package in (probes, reporters):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        __import__(module.name)\n"
        "print(len(probes.names()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(pyz)], capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{len(probes.names())}\n", done.stderr


def test_it_is_executable_and_never_half_written(tmp_path: Path) -> None:
    file = tmp_path / "reporter.pyz"
    file.write_text("old")
    archive.write(file, archive.build())
    assert os.access(file, os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["reporter.pyz"]
    with pytest.raises(FileNotFoundError):
        archive.write(tmp_path / "missing" / "reporter.pyz", b"")


def test_the_build_command_prints_the_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert archive.main([str(tmp_path / "a.pyz")]) == 0
    assert archive.digest((tmp_path / "a.pyz").read_bytes()) in capsys.readouterr().out
    assert archive.main([str(tmp_path / "missing" / "a.pyz")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert archive.main([]) == 2


def test_the_version_is_that_of_the_project() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_the_archive_knows_its_own_digest(pyz: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from reporters.remote import this_archive; print(this_archive.sha256(), this_archive.path())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(pyz)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{archive.digest(pyz.read_bytes())} {pyz}\n"
    assert (this_archive.path(), this_archive.sha256()) == (None, ""), "it runs from sources"
