"""What the environment says about the database, the secrets and the state directory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monitor import env
from monitor.embedded import urls


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        (
            "postgresql://ada:s%40fe@db.example.org:5433/depot",
            {"NAME": "depot", "USER": "ada", "PASSWORD": "s@fe", "HOST": "db.example.org", "PORT": "5433"},
        ),
        ("postgres://db/depot", {"NAME": "depot", "USER": "", "HOST": "db", "PORT": ""}),
        (
            "postgresql://gridcast@/gridcast?host=%2Ftmp%2Fsockets",
            {"NAME": "gridcast", "USER": "gridcast", "HOST": "/tmp/sockets"},
        ),
    ],
)
def test_a_database_url_is_read(url: str, settings: dict[str, str]) -> None:
    assert settings.items() <= env.parse_database_url(url).items()


def test_options_of_a_database_url_are_handed_on_and_connecting_has_a_limit() -> None:
    options = env.parse_database_url("postgresql://db/depot?sslmode=require")["OPTIONS"]
    assert options == {"sslmode": "require", "connect_timeout": "5"}


@pytest.mark.parametrize("url", ["mysql://db/depot", "depot", "sqlite:///file"])
def test_another_database_is_refused_with_what_is_expected(url: str) -> None:
    with pytest.raises(env.InvalidVariable, match="postgresql://user"):
        env.parse_database_url(url)


def test_a_port_that_is_no_number_is_refused_by_the_name_of_the_variable() -> None:
    with pytest.raises(env.InvalidVariable, match=r"DATABASE_URL.*port"):
        env.parse_database_url("postgresql://db:abc/depot")


def test_a_secret_is_made_once_however_many_ask_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDCAST_VAR", str(tmp_path / "var"))
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: env.kept_secret("key"), range(32)))
    assert len(secrets) == 1
    (file,) = (tmp_path / "var" / "secrets").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_size_that_is_no_number_is_refused_by_the_name_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRIDCAST_DEPOT_MAX_BYTES", "20 GB")
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_DEPOT_MAX_BYTES: expected a whole number"):
        env.depot_max_bytes()


def test_the_disk_of_a_depot_elsewhere_is_not_known_unless_somebody_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/depot")
    assert urls.depot_directory() is None
    monkeypatch.setenv("GRIDCAST_DEPOT_DIRECTORY", "/data")
    assert urls.depot_directory() == Path("/data")
