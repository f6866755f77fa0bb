"""``manage.py init`` over real SSH servers of this test, with real trials of probes."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitor.operations.gridfile import loading
from tests.reporters.ssh_sites import SshSites

pytestmark = pytest.mark.grid


@pytest.fixture
def sites() -> Iterator[SshSites]:
    with SshSites("alpha", "beta") as running:
        yield running


def init(*hosts: str, config: Path, output: Path, **options: bool) -> str:
    printed = StringIO()
    call_command("init", *hosts, ssh_config=config, output=output, stdout=printed, **options)
    return printed.getvalue()


def series_of(file: Path) -> set[str]:
    return set(loading.load(str(file), loading.DepotNames()).series)


def test_every_host_of_the_configuration_is_tried_and_watched(sites: SshSites, tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    printed = init(config=sites.config_file, output=file)
    expected = {f"{probe}-{host}" for probe in ("login", "disk") for host in ("alpha", "beta")}
    assert series_of(file) == expected | {"circle-alpha", "gather-alpha"}
    assert printed.count("free in") == 2
    assert f"{file} defines 6 series at 2 hosts" in printed
    assert f"manage.py grid apply {file} --run" in printed
    for site in sites.sites.values():
        assert [path for path in site.root.rglob("*") if "gridcast" in path.name] == []


def test_a_host_that_does_not_answer_is_named_and_left_out(sites: SshSites, tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    printed = init("alpha", "nowhere.invalid", config=sites.config_file, output=file)
    assert series_of(file) == {"login-alpha", "disk-alpha"}
    assert "cannot connect to nowhere.invalid:22" in printed


@pytest.mark.nightly
def test_hosts_that_cannot_copy_to_each_other_get_no_circle_and_the_reason(
    sites: SshSites, tmp_path: Path
) -> None:
    for site in sites.sites.values():
        site.install("scp", "echo 'Permission denied (publickey).' >&2; exit 255")
    file = tmp_path / "grid.yaml"
    printed = init(config=sites.config_file, output=file)
    assert series_of(file) == {"login-alpha", "login-beta", "disk-alpha", "disk-beta"}
    assert "No copies between alpha and beta" in printed
    assert "Permission denied (publickey)" in file.read_text()


@pytest.mark.nightly
def test_two_names_of_one_account_are_one_site(sites: SshSites, tmp_path: Path) -> None:
    alias = sites.config_file.read_text().replace("Host alpha\n", "Host alpha alpha.example.org\n")
    sites.config_file.write_text(alias)
    file = tmp_path / "grid.yaml"
    printed = init("alpha", "alpha.example.org", config=sites.config_file, output=file)
    assert series_of(file) == {"login-alpha", "disk-alpha"}
    assert "the same account as alpha" in printed


def test_a_host_that_runs_no_commands_is_quoted(sites: SshSites, tmp_path: Path) -> None:
    sites.sites["beta"].start_up = r"printf 'Hi! \033[1mNo shell\033[0m access.\n'; exit 1"
    file = tmp_path / "grid.yaml"
    printed = init(config=sites.config_file, output=file)
    assert series_of(file) == {"login-alpha", "disk-alpha"}
    assert "it runs no commands for us" in printed
    assert "\033" not in printed


def test_without_a_usable_host_no_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(CommandError, match="probes can run at none of these hosts"):
        init("nowhere.invalid", config=tmp_path / "config", output=tmp_path / "grid.yaml")
    assert not (tmp_path / "grid.yaml").exists()


def test_an_existing_file_is_kept_unless_it_may_be_replaced(sites: SshSites, tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text("mine")
    with pytest.raises(CommandError, match=r"grid.yaml exists.*--overwrite"):
        init("alpha", config=sites.config_file, output=file)
    assert file.read_text() == "mine"
    init("alpha", config=sites.config_file, output=file, overwrite=True)
    assert "login-alpha" in series_of(file)


def test_a_configuration_without_hosts_asks_for_some(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host *\n")
    with pytest.raises(CommandError, match=r"names no host; name hosts: manage\.py init HOST"):
        init(config=tmp_path / "config", output=tmp_path / "grid.yaml")
    with pytest.raises(CommandError, match=r"missing: No such file.*manage.py init HOST"):
        init(config=tmp_path / "missing", output=tmp_path / "grid.yaml")
