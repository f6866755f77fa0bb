"""The start of the agent's process, which runs for months in the memory that it has then."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from reporters.remote import archive
from tests.reporters.remote.interpreters import SUPPORTED_MOSTLY_BY_NIGHT, interpreter

# What the command ``run`` does before it becomes the agent; prints whether it loaded the agent.
RUN = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from reporters.remote import unpacked
code = unpacked.make(Path(sys.argv[2]))
from reporters.remote.agent import start
start.compile_agent(code)
print("reporters.remote.agent.agent" in sys.modules)
"""


@pytest.mark.parametrize("version", SUPPORTED_MOSTLY_BY_NIGHT)
def test_the_agent_compiles_nothing_and_loads_no_module_for_source_code(
    version: str, pyz: Path, tmp_path: Path
) -> None:
    python, state = interpreter(version), tmp_path / "state"
    state.mkdir(mode=0o700)

    def call(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([python, *argv], capture_output=True, text=True, check=False)

    prepare = ["-IS", "-c", RUN, str(pyz), str(state)]
    assert [call(*prepare).stdout for _ in range(2)] == ["True\n", "False\n"], "compiled once"
    code = state / "code" / archive.digest(pyz.read_bytes())[:16]
    agent = code / "reporters" / "remote" / "agent" / "__main__.py"
    done = call("-IS", "-v", str(agent), "run", "--state", str(tmp_path / "missing"))
    assert done.returncode == 2, done.stderr
    loaded = set(re.findall(r"^import '([\w.]+)'", done.stderr, re.MULTILINE))
    assert "reporters.remote.agent.agent" in loaded
    assert not loaded & {"ast", "dis", "tokenize", "email", "http", "probes.base", "reporters.base"}
    assert "# wrote " not in done.stderr
