"""Every command that the documentation shows exists, with the arguments that it shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for folder in (".", "docs", "client", "integrations/prometheus", "integrations/slurm")
    for path in (ROOT / folder).glob("*")
    if path.suffix in {".md", ".yaml"}
)
COMMAND = re.compile(r"manage\.py ((?:[^`\n\"'#|&;>)(\\]|'[^'\n]*'|\"[^\"\n]*\")+)")
# A sentence that names a command leaves arguments out, or has words such as KIND in their place.
SHORTENED = re.compile(r"arguments are required|expected one argument|invalid choice: '(KIND|NAME)'")


def shown() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for text in COMMAND.findall(page.read_text(encoding="utf-8").replace("\\\n", " ")):
            words = up_to_the_end_of_the_sentence(shlex.split(text))
            if words and re.fullmatch(r"[a-z_]+", words[0]):
                yield f"{page.relative_to(ROOT)}: {shlex.join(words)}", words


def up_to_the_end_of_the_sentence(words: list[str]) -> list[str]:
    last = next((number for number, word in enumerate(words) if word[-1:] in {".", ":", ","}), len(words))
    return [word.rstrip(".:,") for word in words[: last + 1]]


SHOWN = dict(shown())


@pytest.mark.parametrize("where", SHOWN)
def test_a_command_of_the_documentation_has_these_arguments(where: str) -> None:
    name, *arguments = SHOWN[where]
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    try:
        parser.parse_args(arguments)
    except CommandError as error:
        if not SHORTENED.search(str(error)):
            raise
