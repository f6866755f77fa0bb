"""System checks of the settings; commands run only those with this tag."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from monitor.core import env
from monitor.operations.web_server import environment

SETTINGS = "settings"
_PREFIX = "GRIDCAST_"
# What the service reads; a name that ends with "_" stands for all that begin with it.
SERVICE_VARIABLES = frozenset(re.findall(r"``(GRIDCAST_\w+)", env.__doc__ or ""))
# What other programs of ours read, from an environment that they may share with the service.
_OTHERS = """
the client: CA_FILE SPOOL TOKEN TOKEN_FILE
docker-compose.yml: DB_PASSWORD NETWORK PORT SECRETS_FILE SSH
the plug-ins of slurm: FORECAST RANKING SLURM_INI
programs that reporters, probes and the local grid start: IOTRACE IOTRACE_ RUN TOKENS_ WAN
tests: ACCEPT_ARCHITECTURE ACCEPT_OPENAPI ACCESS_SEED AGENT_KILLS AGENT_SEED AGENT_SITES API_EXAMPLES
    API_SEED BENCH_ CHAOS_ROUNDS CHAOS_RUNS CHAOS_SEED CROSS_SEED DEPOT_EXAMPLES ENDS ENDS_KILLS ENDS_SEED
    FUZZ_BODIES FUZZ_REQUESTS FUZZ_SEED GROWTH_SAMPLES KILLS KILLS_SEED REPETITION_SEED REPLAY_KILLS
    SOAK_RUNS SOAK_SEED STORAGE_KILLS STUDY_ROUNDS TESTS_OWN_SERVER
"""
OTHER_VARIABLES = frozenset(_PREFIX + name for name in re.findall(r"\b[A-Z_]+\b", _OTHERS))
_LIKENESS = 0.7  # of a name to another one that may be meant: 1 is equal
WIDE_PREFIX = {4: 16, 6: 48}  # the lengths of prefixes below which strangers may be in a network
# Networks that the Internet does not route: an organisation decides on all their hosts.
_INTERNAL = tuple(
    ip_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)


def is_known(name: str) -> bool:
    """Return whether the service, or another program of ours, reads the variable *name*."""
    names = SERVICE_VARIABLES | OTHER_VARIABLES
    return name in names or any(known.endswith("_") and name.startswith(known) for known in names)


@register(SETTINGS)
def variables(**_: Any) -> list[CheckMessage]:
    return variable_faults(os.environ)


@register(SETTINGS)
def limits_of_web_processes(**_: Any) -> list[CheckMessage]:
    """Return what would end a web process at its start, which alone reads these variables otherwise."""
    faults: list[CheckMessage] = []
    for read in (environment.connections_per_address, environment.web_max_bytes):
        try:
            read()
        except env.InvalidVariable as error:
            faults.append(Error(str(error), id="monitor.E003"))
    return faults


def variable_faults(environ: Mapping[str, str]) -> list[CheckMessage]:
    """Return the variables that nothing reads, and those whose quotation marks no shell has removed."""
    faults: list[CheckMessage] = []
    for name, value in sorted(environ.items()):
        if not name.startswith(_PREFIX):
            continue
        if not is_known(name):
            faults.append(
                Warning(f"{name}: gridcast reads no such variable.", hint=_meant(name), id="monitor.W003")
            )
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            message = f"{name}: the value begins and ends with a quotation mark, which is part of it."
            hint = "Remove the marks: a shell removes them, docker run --env-file does not."
            faults.append(Warning(message, hint=hint, id="monitor.W004"))
    return faults


def _meant(name: str) -> str:
    names = {known.removeprefix(_PREFIX): known for known in SERVICE_VARIABLES}
    nearest = difflib.get_close_matches(name.removeprefix(_PREFIX), names, n=1, cutoff=_LIKENESS)
    if not nearest:
        return "Remove it; docs/operations.md, Environment, lists the variables."
    known = names[nearest[0]]
    return f"Did you mean {known}{'...' if known.endswith('_') else ''}?"


@register(SETTINGS)
def lease_outlives_heartbeats(**_: Any) -> list[CheckMessage]:
    if settings.GRIDCAST_LEASE_SECONDS >= 3 * settings.GRIDCAST_HEARTBEAT_SECONDS:
        return []
    return [Error("GRIDCAST_LEASE_SECONDS must be at least three heartbeats long.", id="monitor.E001")]


@register(SETTINGS)
def traces_have_an_exporter(**_: Any) -> list[CheckMessage]:
    if not settings.GRIDCAST_OTLP_ENDPOINT or find_spec("opentelemetry.exporter.otlp.proto.http"):
        return []
    message = (
        "GRIDCAST_OTLP_ENDPOINT is set, and the exporter is not installed: pip install 'gridcast[otlp]'."
    )
    return [Error(message, id="monitor.E002")]


@register(deploy=True)
def not_in_debug(**_: Any) -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    return [Warning("GRIDCAST_DEBUG shows tracebacks to every visitor.", id="monitor.W001")]


@register(SETTINGS)
def proxies_are_few(**_: Any) -> list[CheckMessage]:
    networks = settings.GRIDCAST_PROXIES.networks
    wide = [str(network) for network in networks if is_wide(network) and not _is_internal(network)]
    if not wide:
        return []
    message = f"GRIDCAST_PROXIES: any host of {', '.join(wide)} can send requests in the name of any address."
    return [Warning(message, hint="Name the addresses of the proxies.", id="monitor.W002")]


def is_wide(network: IPv4Network | IPv6Network) -> bool:
    """Return whether strangers may be in *network*: it is larger than that of an institute."""
    return network.prefixlen < WIDE_PREFIX[network.version] and not network.is_loopback


def _is_internal(network: IPv4Network | IPv6Network) -> bool:
    return any(
        each.version == network.version and network.subnet_of(each)  # type: ignore[arg-type]  # of one version
        for each in _INTERNAL
    )
