"""``manage.py failures``: name the causes of failure texts, and propose signatures for unknown ones."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.analysis.signatures.active import active_signatures
from monitor.analysis.signatures.classifier import FailureText, classifier_of
from monitor.analysis.signatures.loading import read
from monitor.analysis.signatures.shipped import shipped
from monitor.analysis.signatures.signature import Signature
from monitor.analysis.signatures.unknown_failures import proposals
from monitor.core.yamlfile.problems import InvalidYamlFile
from monitor.models import Run
from monitor.models.failure_signature import UNKNOWN
from monitor.operations.gridfile.proposing import to_grid_file

_STDIN = "-"
_SHOWN_CHARACTERS = 100


class Command(BaseCommand):
    help = (
        "classify: name the causes of failure texts, by the signatures that gridcast ships, --own ones, and"
        " those of --signatures.\npropose: print signatures for runs of unknown cause, for a grid file."
    )

    def create_parser(self, *args: Any, **options: Any) -> Any:
        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, **options)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["classify", "propose"])
        parser.add_argument(
            "file",
            nargs="?",
            help="classify: texts, one per line; a line may also be a JSON object with message, stage,"
            " exit_status, stderr_tail and tools; - reads standard input",
        )
        parser.add_argument("--whole", action="store_true", help="the file is one text of several lines")
        parser.add_argument("--own", action="store_true", help="also use the own signatures of the depot")
        parser.add_argument(
            "--signatures", metavar="FILE", help="YAML file of further signatures; the same names replace"
        )

    def handle(
        self, *, what: str, file: str | None, whole: bool, own: bool, signatures: str | None, **_: Any
    ) -> None:
        if what == "propose":
            if file is not None or whole or own or signatures is not None:
                raise CommandError("propose reads the depot; it takes no file and no options")
            self._propose()
        elif file is None:
            raise CommandError("classify: expected a file, or - for standard input")
        else:
            self._classify(file, whole, _signatures(signatures, own=own))

    def _propose(self) -> None:
        found = proposals(Run.objects.all(), timezone.now())
        if found:
            self.stdout.write(to_grid_file(found), ending="")
        self.stderr.write(f"{len(found)} proposals")

    def _classify(self, file: str, whole: bool, signatures: list[Signature]) -> None:
        classifier = classifier_of(tuple(signatures))
        unknown = count = 0
        for failure in _failures(_content(file), file, whole):
            signature = classifier.classify(failure)
            count, unknown = count + 1, unknown + (signature is None)
            name, category = (signature.name, signature.category) if signature else (UNKNOWN, UNKNOWN)
            self.stdout.write(f"{name}\t{category}\t{_shown(failure.text)}")
        self.stderr.write(f"{count} texts, {unknown} unknown")


def _signatures(file: str | None, *, own: bool) -> list[Signature]:
    signatures = {each.name: each for each in (active_signatures() if own else shipped())}
    if file is not None:
        try:
            signatures |= {each.name: each for each in read(_content(file), file)}
        except InvalidYamlFile as error:
            raise CommandError(str(error)) from None
    return list(signatures.values())


def _content(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None


def _failures(content: bytes, file: str, whole: bool) -> Iterator[FailureText]:
    text = content.decode("utf-8", errors="replace")
    if whole:
        yield FailureText(text)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("{"):
            yield _from_json(line, f"{file}:{number}")
        elif line.strip():
            yield FailureText(line)


def _from_json(line: str, place: str) -> FailureText:
    try:
        document = json.loads(line)
    except ValueError:  # a text that begins with a brace
        return FailureText(line)
    if not isinstance(document.get("message"), str):
        raise CommandError(f'{place}: expected "message": a text')
    status = document.get("exit_status")
    if status is not None and type(status) is not int:
        raise CommandError(f'{place}: expected "exit_status": a whole number, got {json.dumps(status)}')
    tools = document.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        raise CommandError(f'{place}: expected "tools": a list of texts, got {json.dumps(tools)}')
    texts = {name: document.get(name) or "" for name in ("stage", "stderr_tail")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise CommandError(f'{place}: expected "{name}": a text, got {json.dumps(text)}')
    return FailureText(document["message"], texts["stage"], status, texts["stderr_tail"], frozenset(tools))


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."
