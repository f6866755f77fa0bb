from __future__ import annotations

from pathlib import Path

import pytest

from monitor.operations.survey.ssh_hosts import SshHost, Unresolved, configured_names, resolve


def written(directory: Path, text: str, name: str = "config") -> Path:
    file = directory / name
    file.write_text(text)
    return file


def test_hosts_are_listed_in_order_without_patterns(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "# Host commented\nHost ncsa sdsc # and a comment\n  User me\nhost=iu\n"
        'Host *.example.org !bad tacc?\nHost *\n  Compression yes\nHost "anl"\nHost ncsa\n',
    )
    assert configured_names(config) == ["ncsa", "sdsc", "iu", "anl"]


def test_included_files_are_read(tmp_path: Path) -> None:
    written(tmp_path, "Host inner\n", "b.conf")
    config = written(tmp_path, f"Include {tmp_path}/*.conf {tmp_path}/missing\nHost outer\n")
    assert configured_names(config) == ["inner", "outer"]


def test_a_file_that_includes_itself_is_read(tmp_path: Path) -> None:
    config = written(tmp_path, f"Host one\nInclude {tmp_path}/config\n")
    assert configured_names(config) == ["one"]


def test_unusable_lines_are_left_to_the_client(tmp_path: Path) -> None:
    config = written(tmp_path, 'Include ~nosuchuser/x\nHost "open\nHost fine\nHost\n')
    assert configured_names(config) == ["fine"]


def test_a_missing_configuration_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        configured_names(tmp_path / "config")


def test_an_alias_is_resolved_as_the_client_does(tmp_path: Path) -> None:
    config = written(tmp_path, "Host ncsa\n  HostName login.example.org\n  Port 2222\n  User probe\n")
    assert resolve("ncsa", config) == SshHost("ncsa", "login.example.org", 2222, "probe")


def test_a_configuration_that_the_client_refuses_is_quoted(tmp_path: Path) -> None:
    config = written(tmp_path, "Host ncsa\n  Prot 2222\n")
    with pytest.raises(Unresolved, match=r"(?i)bad configuration option: prot"):
        resolve("ncsa", config)
