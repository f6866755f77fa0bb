from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from monitor.operations.survey.facts import HostFacts, ask, parse
from probes.grid import Completed
from reporters import site_tools
from reporters.shells.local import Shell


class Prefixed(Shell):
    """A local shell that runs every program by the program *prefix*."""

    def __init__(self, resource: str, label: str, *, prefix: Sequence[str]) -> None:
        super().__init__(resource, label)
        self._prefix = prefix

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        return super().run([*self._prefix, *argv], timeout_seconds=timeout_seconds, input=input)


OUTPUT = """\
Welcome to the cluster!
fact system Linux 5.14.0
fact cores 64
fact python 3.9.18
fact scratch /scratch/me
fact free_kibibytes 2048
fact tool cc
fact tool scp
fact batch slurm
fact partition debug
fact partition batch*
"""


def test_facts_are_read_between_the_lines_of_start_up_files() -> None:
    assert parse(OUTPUT) == HostFacts(
        system="Linux 5.14.0",
        cores=64,
        python="3.9.18",
        scratch="/scratch/me",
        free_bytes=2048 * 1024,
        tools=frozenset({"cc", "scp"}),
        batch_kind="slurm",
        partitions=("batch", "debug"),
    )


def test_the_default_partition_is_proposed() -> None:
    assert parse(OUTPUT).batch == {"kind": "slurm", "queue": "batch"}


def test_a_host_without_a_batch_system_forks() -> None:
    assert parse("fact system Linux\n").batch == {"kind": "fork"}


@pytest.mark.parametrize("text", ["", "fact", "fact \n", "fact cores many\nfact free_kibibytes -\n", "\0\n"])
def test_unusable_output_is_a_host_with_nothing(text: str) -> None:
    found = parse(text)
    assert (found.cores, found.free_bytes, found.scratch) == (0, 0, "")
    assert found.missing_tools == list(site_tools.NEEDED)


def test_characters_that_control_a_terminal_do_not_pass() -> None:
    assert parse("fact system \033[1mLinux\033[0m\n").system == "?[1mLinux?[0m"


def test_a_number_of_absurd_length_is_ignored() -> None:
    assert parse(f"fact cores {'9' * 5000}\n").cores == 0


def test_a_scratch_that_every_user_can_change_is_not_proposed(tmp_path: Path) -> None:
    unsafe, home = tmp_path / "unsafe", tmp_path / "home"
    unsafe.mkdir()
    unsafe.chmod(0o777)
    home.mkdir(mode=0o755)
    script = f'HOME={home} SCRATCH={unsafe} exec "$@"'
    assert ask(Prefixed("here", "init", prefix=["sh", "-c", script, "sh"])).scratch == str(home)


def test_this_machine_has_what_probes_need(tmp_path: Path) -> None:
    found = ask(Shell("here", "init", directory=str(tmp_path)))
    assert found.missing_tools == []
    assert found.cores > 0
    assert Path(found.scratch).is_dir()
    assert found.free_bytes > 0
    assert found.python.startswith("3.")
