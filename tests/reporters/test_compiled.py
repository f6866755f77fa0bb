"""C sources, compiled once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reporters.compiled import CannotCompile, NoCompiler, compiled

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (Debian: gcc, libc6-dev)")
SOURCES = {"answer.c": "int main(void) { return 42; }\n"}


def test_what_is_compiled_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = compiled(tmp_path / "cache", "answer", SOURCES, [])
    assert subprocess.run([answer], check=False).returncode == 42
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiled(tmp_path / "cache", "answer", SOURCES, []) == answer


@pytest.mark.parametrize(
    ("sources", "options"), [({"answer.c": "int main(void) { return 43; }\n"}, []), (SOURCES, ["-g"])]
)
def test_other_sources_or_options_are_compiled_as_another_program(
    tmp_path: Path, sources: dict[str, str], options: list[str]
) -> None:
    answer = compiled(tmp_path, "answer", SOURCES, [])
    assert compiled(tmp_path, "answer", sources, options) != answer


def test_without_a_compiler_a_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match="cannot compile answer: there is no C compiler, cc "):
        compiled(tmp_path / "cache", "answer", SOURCES, [])


def test_sources_with_an_error_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(CannotCompile, match=r"cannot compile answer: answer.c:1:\d+: error: "):
        compiled(tmp_path, "answer", {"answer.c": "int main(void) { return }\n"}, [])
    assert [*tmp_path.iterdir()] == []
