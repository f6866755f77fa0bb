"""Environment variables: the database, secrets, sizes and the state directory."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import pytest
import yaml

from monitor.core import env
from monitor.operations.embedded import urls
from monitor.operations.web_server import environment


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
def test_a_database_url_is_parsed(url: str, settings: dict[str, str]) -> None:
    assert settings.items() <= env.parse_database_url(url).items()


def test_options_of_a_database_url_are_kept_and_connecting_has_a_timeout() -> None:
    options = env.parse_database_url("postgresql://db/depot?sslmode=require")["OPTIONS"]
    assert options == {"sslmode": "require", "connect_timeout": "5"}


# Read from the environment of programs that gridcast starts itself, or only by tests.
OWN_PROGRAMS = re.compile(r"GRIDCAST_(IOTRACE|TOKENS|WAN|RUN$)")


def variables_of_the_service() -> set[str]:
    """Return the names of the variables that the code of the service reads, or the documentation lists."""
    code = "\n".join(file.read_text() for file in sorted((env.ROOT / "monitor").rglob("*.py")))
    read = re.findall(r'environ[^\n]*"(GRIDCAST_\w+)"|"(GRIDCAST_\w+)", default', code)
    named = {name for pair in read for name in pair if name and not OWN_PROGRAMS.match(name)}
    documented = (env.ROOT / "docs" / "operations.md").read_text().partition("## Environment")[2]
    rows = [line for line in documented.splitlines() if line.startswith("| `")]
    return named | {name for row in rows for name in re.findall(r"GRIDCAST_\w+", row.split("|")[1])}


def test_the_list_of_variables_has_every_variable() -> None:
    listed = set(re.findall(r"``(GRIDCAST_\w+)", env.__doc__ or ""))
    assert len(variables_of_the_service()) > 30
    assert {name for name in variables_of_the_service() if not known(name, listed)} == set()


def known(name: str, listed: set[str]) -> bool:
    """Return whether *listed* has *name*, or its beginning if it stands for several names."""
    return name in listed or any(name.endswith("_") and each.startswith(name) for each in listed)


def test_only_the_control_worker_gets_the_secrets_of_webhooks() -> None:
    """Their names are free, so the file of secrets is passed on as a whole."""
    compose = yaml.safe_load((env.ROOT / "docker-compose.yml").read_text())
    files = {name: service.get("env_file") for name, service in compose["services"].items()}
    assert {name for name, file in files.items() if file} == {"control"}
    assert files["control"] == [{"path": "${GRIDCAST_SECRETS_FILE:-./webhooks.env}", "required": False}]


def test_the_comments_of_docker_compose_name_every_variable_that_it_passes_on() -> None:
    comments, _, services = (env.ROOT / "docker-compose.yml").read_text().partition("\nname: ")
    named = set(re.findall(r"GRIDCAST_\w+", comments))
    passed = set(re.findall(r"\$\{(GRIDCAST_\w+)", services))
    assert {name for name in passed if not any(name.startswith(each) for each in named)} == set()


@pytest.mark.parametrize("url", ["mysql://db/depot", "depot", "sqlite:///file"])
def test_the_error_about_another_database_names_the_expected_scheme(url: str) -> None:
    with pytest.raises(env.InvalidVariable, match="postgresql://user"):
        env.parse_database_url(url)


def test_the_error_about_a_bad_port_names_the_variable() -> None:
    with pytest.raises(env.InvalidVariable, match=r"DATABASE_URL.*port"):
        env.parse_database_url("postgresql://db:abc/depot")


def test_concurrent_calls_generate_a_secret_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_VAR", str(tmp_path / "var"))
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: env.kept_secret("key"), range(32)))
    assert len(secrets) == 1
    (file,) = (tmp_path / "var" / "secrets").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_secret_that_others_may_change_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_VAR", str(tmp_path / "var"))
    monkeypatch.delenv("GRIDCAST_SECRET_KEY", raising=False)
    env.secret_key()
    (tmp_path / "var" / "secrets" / "secret-key").chmod(0o666)
    with pytest.raises(env.InvalidVariable, match=r"secret-key has mode .*: every user could change it"):
        env.secret_key()


def test_the_error_about_a_bad_size_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRIDCAST_DEPOT_MAX_BYTES", "20 GB")
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_DEPOT_MAX_BYTES: expected a whole number"):
        env.depot_max_bytes()


def test_the_directory_of_an_external_depot_is_unknown_unless_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/depot")
    assert urls.depot_directory() is None
    monkeypatch.setenv("GRIDCAST_DEPOT_DIRECTORY", "/data")
    assert urls.depot_directory() == Path("/data")


def test_the_monitor_is_suspected_by_half_of_the_sites_in_a_quarter_of_an_hour_unless_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (env.suspect_share(), env.suspect_window_seconds()) == (0.5, 900)
    monkeypatch.setenv("GRIDCAST_SUSPECT_SHARE", "0.25")
    monkeypatch.setenv("GRIDCAST_SUSPECT_WINDOW_SECONDS", "60")
    assert (env.suspect_share(), env.suspect_window_seconds()) == (0.25, 60)


@pytest.mark.parametrize("text", ["0", "-1", "1.01", "nan", "inf", "half", "50 %"])
def test_an_impossible_share_of_sites_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GRIDCAST_SUSPECT_SHARE", text)
    with pytest.raises(env.InvalidVariable, match=f"GRIDCAST_SUSPECT_SHARE: expected a number .*{text}"):
        env.suspect_share()


@pytest.mark.parametrize("text", ["59", "86401", "-60", "15m", "900.5", "\N{SUPERSCRIPT TWO}00"])
def test_an_impossible_window_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GRIDCAST_SUSPECT_WINDOW_SECONDS", text)
    with pytest.raises(env.InvalidVariable, match="expected a whole number from 60 to 86400, got"):
        env.suspect_window_seconds()


@pytest.mark.parametrize("hosts", ["localhost", "127.0.0.1,[::1],127.9.9.9", "a.localhost", None])
def test_loopback_needs_no_decision_on_tls(monkeypatch: pytest.MonkeyPatch, hosts: str | None) -> None:
    monkeypatch.delenv("GRIDCAST_TLS", raising=False)
    if hosts is None:
        monkeypatch.delenv("GRIDCAST_HOSTS", raising=False)
    else:
        monkeypatch.setenv("GRIDCAST_HOSTS", hosts)
    assert env.hosts()[0] == (hosts or "localhost").split(",")[0]


@pytest.mark.parametrize(
    "host", ["grid.example.org", "10.0.0.1", "[2001:db8::1]", ".example.org", "localhost.org"]
)
def test_hosts_of_the_network_are_refused_until_tls_is_decided_on(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("GRIDCAST_HOSTS", f"localhost, {host}")
    monkeypatch.delenv("GRIDCAST_TLS", raising=False)
    with pytest.raises(
        env.InvalidVariable, match=r"GRIDCAST_TLS: .* set it to 1 behind a TLS proxy, or to 0"
    ):
        env.hosts()
    for decision, is_behind_tls in (("1", True), ("0", False)):
        monkeypatch.setenv("GRIDCAST_TLS", decision)
        assert env.hosts() == ["localhost", host]
        assert env.behind_tls() is is_behind_tls


def test_another_word_for_tls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_TLS", "yes")
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_TLS: expected 0 or 1, got 'yes'"):
        env.behind_tls()


def test_addresses_and_networks_may_read_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_METRICS_ALLOW", "10.1.2.3, 2001:db8::/32,")
    assert environment.metrics_allow() == (ip_network("10.1.2.3/32"), ip_network("2001:db8::/32"))


@pytest.mark.parametrize("text", ["prometheus.example.org", "10.0.0.1/8", "10.0.0.1;10.0.0.2"])
def test_an_invalid_network_is_refused_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("GRIDCAST_METRICS_ALLOW", text)
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_METRICS_ALLOW: expected addresses"):
        environment.metrics_allow()


NUMBERS = {
    "GRIDCAST_METRICS_MAX_SERIES": environment.metrics_max_series,
    "GRIDCAST_API_REQUESTS": environment.api_requests,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3", "10000000000", "\u0663"])
def test_an_invalid_number_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(env.InvalidVariable, match=f"{name}: expected a whole number from 1 to"):
        NUMBERS[name]()
    monkeypatch.setenv(name, "7")
    assert NUMBERS[name]() == 7


def test_internal_hosts_are_names_as_urls_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_INTERNAL_WEBHOOK_HOSTS", " Hooks.internal ,[::1],10.0.0.8")
    assert env.internal_webhook_hosts() == {"hooks.internal", "::1", "10.0.0.8"}


def test_the_collector_is_a_url_with_or_without_the_path_of_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://collector:4318", "http://collector:4318/", "http://collector:4318/v1/traces"):
        monkeypatch.setenv("GRIDCAST_OTLP_ENDPOINT", url)
        assert env.otlp_endpoint() == "http://collector:4318"
    monkeypatch.setenv("GRIDCAST_OTLP_ENDPOINT", "collector:4318")
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_OTLP_ENDPOINT: expected a URL"):
        env.otlp_endpoint()


@pytest.mark.parametrize(
    "url",
    [
        "gridcast.example.org",
        "ftp://gridcast.example.org",
        "https://",
        "https://gridcast.example.org:port",
        "https://gridcast.example.org:99999",
        "https://[::1",
        "https://ada@gridcast.example.org",
        "https://gr\N{LATIN SMALL LETTER I WITH DIAERESIS}d.example.org",
    ],
)
def test_a_public_url_has_a_scheme_and_a_host(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.delenv("GRIDCAST_URL", raising=False)
    assert environment.web_url() == ""
    monkeypatch.setenv("GRIDCAST_URL", "https://gridcast.example.org:8443/")
    assert environment.web_url() == "https://gridcast.example.org:8443"
    monkeypatch.setenv("GRIDCAST_URL", url)
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_URL: expected http:// or https:// and a host"):
        environment.web_url()
