"""``manage.py reporter deploy|upgrade|remove``: remote reporters, installed at sites over SSH."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from monitor.management.caller import caller_name
from monitor.operations.deployment import many
from monitor.operations.deployment.deploy import WAIT_SECONDS, DeployOptions, deploy
from monitor.operations.deployment.remove import DELIVER_SECONDS, forget, remove
from monitor.operations.deployment.targets import NoTarget, find_deployments, find_target
from monitor.operations.deployment.upgrade import upgrade
from monitor.operations.web_server.environment import web_url
from reporters.remote import archive as archives
from reporters.remote import services
from reporters.remote.policy.parsing import parse_policy
from reporters.remote.policy.site_policy import UnreadablePolicy

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from monitor.models import Deployment

    SiteWork = Callable[[Callable[[str], None]], None]

VERBS = {
    "deploy": "install a reporter at sites, over SSH",
    "upgrade": "replace deployed reporters by this version",
    "remove": "deliver what deployed reporters have, and remove them from their sites",
}
OF_ONE_SITE = ("host", "name", "state")


class Command(BaseCommand):
    help = "Deploy, upgrade and remove reporters at sites, over SSH."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        by_verb = {verb: verbs.add_parser(verb, help=text, description=text) for verb, text in VERBS.items()}
        _add_deploy_options(by_verb["deploy"])
        _add_remove_options(by_verb["remove"])
        for verb in ("upgrade", "remove"):
            by_verb[verb].add_argument("names", nargs="*", metavar="NAME", help="a deployed reporter")
            by_verb[verb].add_argument("--all", action="store_true", help="all deployed reporters")
        for verb in ("deploy", "upgrade"):
            by_verb[verb].add_argument(
                "--wait",
                type=float,
                default=WAIT_SECONDS,
                metavar="SECONDS",
                help=f"how long to wait for a heartbeat (default: {WAIT_SECONDS:g})",
            )
        for subparser in by_verb.values():
            subparser.add_argument(
                "--archive", type=Path, metavar="FILE", help="default: packed from this checkout"
            )

    def handle(self, *, verb: str, archive: Path | None, **options: Any) -> None:
        content = archives.build() if archive is None else _read("--archive", archive)
        make = {"deploy": _deployments, "upgrade": _upgrades, "remove": _removals}[verb]
        try:
            works = make(content, options)
        except NoTarget as error:
            raise CommandError(str(error)) from error
        faults = many.at_all(works, self.stdout)
        if faults:
            raise CommandError(f"{verb} failed at {len(faults)} of {len(works)}: {', '.join(faults)}")


def _add_deploy_options(parser: ArgumentParser) -> None:
    parser.add_argument("sites", nargs="+", metavar="SITE", help="a site of the grid")
    parser.add_argument("--host", default="", help="host, USER@HOST or alias (default: that of its resource)")
    parser.add_argument("--ssh-config", type=Path, metavar="FILE", help="SSH configuration for --host")
    parser.add_argument("--name", default="", help="name of the reporter (default: that of the site)")
    parser.add_argument(
        "--url", default="", help="this server, as the site reaches it (default: GRIDCAST_URL)"
    )
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="authorities that certify this server")
    parser.add_argument("--proxy", default="", metavar="URL", help="HTTP proxy of the site, or none")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="site policy for a site that has none")
    parser.add_argument("--state", default="", metavar="DIRECTORY", help="state directory at the site")
    parser.add_argument("--python", default="", metavar="PATH", help="Python at the site")
    parser.add_argument(
        "--kind", choices=services.by_preference(), help="service that starts it (default: what the site has)"
    )
    parser.add_argument("--job-option", action="append", default=[], help="option of a Slurm job")


def _add_remove_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--deliver",
        type=float,
        default=DELIVER_SECONDS,
        metavar="SECONDS",
        help=f"how long to deliver results (default: {DELIVER_SECONDS:g})",
    )
    parser.add_argument("--drop-records", action="store_true", help="give up results that are not delivered")
    parser.add_argument(
        "--unreachable", action="store_true", help="only revoke the key: the site cannot be reached any more"
    )


def _deployments(archive: bytes, options: dict[str, Any]) -> dict[str, SiteWork]:
    sites: list[str] = list(dict.fromkeys(options["sites"]))
    given = [option for option in OF_ONE_SITE if options[option]]
    if len(sites) > 1 and given:
        raise CommandError(f"--{given[0]}: expected one site with this option, got {len(sites)}")
    common: dict[str, Any] = {
        "url": _url(options["url"]),
        "archive": archive,
        "state": options["state"],
        "python": options["python"],
        "policy": _policy(options["policy"]),
        "authorities": options["ca_file"] and _read("--ca-file", options["ca_file"]),
        "enrol": [f"--proxy={options['proxy']}"] if options["proxy"] else [],
        "install": [
            *([f"--kind={options['kind']}"] if options["kind"] else []),
            *(f"--job-option={option}" for option in options["job_option"]),
        ],
        "wait_seconds": options["wait"],
    }
    targets = [find_target(site, options["name"], options["host"], options["ssh_config"]) for site in sites]
    return {
        target.reporter.name: partial(deploy, target.reporter, DeployOptions(shell=target.shell, **common))
        for target in targets
    }


def _upgrades(archive: bytes, options: dict[str, Any]) -> dict[str, SiteWork]:
    return {
        name: partial(upgrade, deployment, archive, wait_seconds=options["wait"])
        for name, deployment in _chosen(options).items()
    }


def _removals(archive: bytes, options: dict[str, Any]) -> dict[str, SiteWork]:
    def work(deployment: Deployment, say: Callable[[str], None]) -> None:
        if options["unreachable"]:
            forget(deployment, caller_name())
            say("revoked; its files stay at the site")
            return
        remove(
            deployment,
            archive,
            caller_name(),
            say,
            drops_records=options["drop_records"],
            deliver_seconds=options["deliver"],
        )

    return {name: partial(work, deployment) for name, deployment in _chosen(options).items()}


def _chosen(options: dict[str, Any]) -> dict[str, Deployment]:
    if bool(options["names"]) == options["all"]:
        raise CommandError("expected names of deployed reporters, or --all")
    return find_deployments(options["names"])


def _url(given: str) -> str:
    url = given or web_url()
    if not url.startswith(("https://", "http://")):
        raise CommandError(
            "expected the URL of this server as sites reach it, such as https://grid.example.org: "
            f"set GRIDCAST_URL, or give --url; got {url!r}"
        )
    return url


def _policy(file: Path | None) -> bytes | None:
    if file is None:
        return None
    content = _read("--policy", file)
    try:
        parse_policy(content)
    except UnreadablePolicy as error:
        raise CommandError(f"--policy: {file}: {error}") from error
    return content


def _read(option: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CommandError(f"{option}: cannot read {file}: {error.strerror}") from error
