"""Every curl command of docs/api.md is executed, and its answer has the fields that the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from monitor.models import Forecast
from tests.monitor.web.api.example_grid import example_grid

PAGE = Path(__file__).parents[4] / "docs" / "api.md"
FORECAST = "4711"  # of the page
REPORTS = re.compile(r"^## Sending reports$.*?(?=^## )", re.MULTILINE | re.DOTALL)  # has its own tests
FIRST_STEPS = re.compile(r"^## From nothing to a ranked answer$.*?(?=^## )", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_work(live_server: LiveServer) -> None:
    token = example_grid()
    for command, shown in commands(REPORTS.sub("", PAGE.read_text(encoding="utf-8"))):
        answer = answer_of(command, live_server.url, token)
        if shown.startswith("{"):
            check(json.loads(shown), json.loads(answer), command)
        else:  # header fields, whose numbers differ
            without_numbers = [re.sub(r"(?<=[rtq]=)\d+", "N", each) for each in (shown, answer)]
            assert without_numbers[0].split() == without_numbers[1].split(), command


def test_a_scheduler_gets_as_far_as_the_page_says_with_the_role_that_it_names(
    live_server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the account, the role and the token of the page, and nothing else."""
    example_grid()
    (section,) = FIRST_STEPS.findall(PAGE.read_text(encoding="utf-8"))
    for line in re.findall(r"^\$ python manage\.py (.*)$", section, re.MULTILINE):
        capsys.readouterr()
        call_command(*shlex.split(line))
    token = capsys.readouterr().out.strip()
    assert token.startswith("gcast_")
    answers = [
        json.loads(answer_of(command, live_server.url, token)) for command, _ in commands(section, least=4)
    ]
    assert [next(iter(answer)) for answer in answers] == ["series", "id", "quantile", "forecast"]


def answer_of(command: str, url: str, token: str) -> str:
    environment = {"PATH": os.environ["PATH"], "URL": url, "TOKEN": token}
    script = command.replace(FORECAST, forecast())
    return subprocess.check_output(["bash", "-c", script], env=environment, text=True)


def forecast() -> str:
    """Return the id of the forecast that was delivered; jobs that began before it would be refused."""
    Forecast.objects.update(issued_at=timezone.now() - timedelta(hours=1))
    delivered = Forecast.objects.filter(metric__name="total.seconds").order_by("-pk").first()
    return str(delivered.pk) if delivered else FORECAST


def commands(page: str, *, least: int = 9) -> Iterator[tuple[str, str]]:
    """Yield each curl command of the page's consoles, with the answer that the page shows."""
    found = 0
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE):
            if part.startswith("curl "):
                found += 1
                yield split(part)
    assert found >= least


def split(part: str) -> tuple[str, str]:
    """Split *part* where its first complete command ends."""
    lines = part.splitlines()
    for count in range(1, len(lines) + 1):
        command = "\n".join(lines[:count])
        if not command.endswith("\\") and is_complete(command):
            return command, "\n".join(lines[count:])
    raise AssertionError(f"no complete command: {part}")


def is_complete(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def check(shown: Any, answered: Any, where: str) -> None:
    """Check that *answered* has each field of *shown*, with a value of the same type."""
    if isinstance(shown, dict):
        assert isinstance(answered, dict), where
        for key, value in shown.items():
            assert key in answered, f"{where}\nhas no {key!r}: {answered}"
            check(value, answered[key], f"{where}\n{key}")
    elif isinstance(shown, list):
        assert isinstance(answered, list), where
        if shown:
            assert answered, f"{where}\nis empty"
            check(shown[0], answered[0], where)
    elif shown is not None and answered is not None:
        kinds = [float if isinstance(each, int | float) else type(each) for each in (shown, answered)]
        assert kinds[0] is kinds[1], f"{where}: {shown!r} is shown, {answered!r} answered"
