"""``manage.py ping_key create|list|revoke``: the keys with which programs outside of gridcast ping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.depot.access import ping_keys
from monitor.depot.access.ping_keys import NotReported
from monitor.management.caller import caller_name
from monitor.models import PingKey, Series

if TYPE_CHECKING:
    from argparse import ArgumentParser

NAME_CHARACTERS = 100
FALLBACK_URL = "https://GRIDCAST"


class Command(BaseCommand):
    help = "Create, list and revoke ping keys: each reports runs of one series, by its address alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="create a key; it is shown once and not stored")
        create.add_argument("series", help="a series with 'probe: reported'")
        create.add_argument("--name", default="", help="the program that will use it")
        listing = verbs.add_parser("list", help="list keys, without their texts")
        listing.add_argument("series", nargs="?", help="default: all series")
        revoke = verbs.add_parser("revoke", help="revoke a key: its next ping is refused")
        revoke.add_argument("id", type=int, help="the id that list shows")

    def handle(self, *, verb: str, **options: Any) -> None:
        {"create": self._create, "list": self._list, "revoke": self._revoke}[verb](options)

    def _create(self, options: dict[str, Any]) -> None:
        series = _find(options["series"])
        if len(options["name"]) > NAME_CHARACTERS:
            raise CommandError(f"--name: expected at most {NAME_CHARACTERS} characters")
        try:
            _, text = ping_keys.create(series, options["name"], who=caller_name(), now=timezone.now())
        except NotReported as error:
            raise CommandError(str(error)) from error
        url = f"{settings.GRIDCAST_URL or FALLBACK_URL}/api/v1/ping/{text}"
        self.stdout.write(f"{text}\n\nIn a crontab:\nPROGRAM && curl -fsS -m 10 --retry 5 -o /dev/null {url}")

    def _list(self, options: dict[str, Any]) -> None:
        keys = PingKey.objects.select_related("series").order_by("series__sort_name", "created_at")
        if options["series"]:
            keys = keys.filter(series=_find(options["series"]))
        for key in keys:
            used = f"used {key.used_at:%Y-%m-%d %H:%M} UTC" if key.used_at else "never used"
            revoked = f", revoked by {key.revoked_by}" if key.revoked_at else ""
            self.stdout.write(f"{key.pk}  {key.series}  {key.prefix}...  {key.name or '-'}  {used}{revoked}")

    def _revoke(self, options: dict[str, Any]) -> None:
        key = PingKey.objects.filter(pk=options["id"]).select_related("series").first()
        if key is None:
            raise CommandError(f"there is no ping key {options['id']}; manage.py ping_key list shows all")
        is_revoked = ping_keys.revoke(key, who=caller_name(), now=timezone.now())
        self.stdout.write(f"{key} {'is revoked' if is_revoked else 'was revoked before'}")


def _find(name: str) -> Series:
    series = Series.objects.filter(name=name).select_related("reporter").first()
    if series is None:
        raise CommandError(f"there is no series {name!r}")
    return series
