"""A user gets two downloads at once, over all processes; each place is free when its answer has ended."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from monitor.core.env import ROOT
from monitor.depot.access.download_places import AT_ONCE, leave_place
from monitor.models import ApiToken, Reporter, Series
from monitor.models.reporter import HOME
from monitor.models.token import READ
from tests.monitor.web.pages import builders
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
EXPORT = "/api/v1/series/circle/export"
PAGE = "/series/circle/samples.csv"


def break_session() -> None:
    """Close the connection of this thread behind Django's back."""
    connection.connection.close()


def end_thread() -> None:
    leave_place()
    connection.close()


class Downloading:
    """A thread, with a connection of its own, that has begun to answer a download and is not read."""

    def __init__(self, client: Client, path: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.answer: Any = self._thread.submit(client.get, path).result()

    def read(self) -> bytes:
        return self._thread.submit(lambda: b"".join(self.answer.streaming_content)).result()

    def leave(self) -> None:
        """End as the web server does when the client has gone: it closes the answer."""
        self._thread.submit(self.answer.close).result()

    def kill(self) -> None:
        """End the session with the database, and nothing else, as SIGKILL does to a web process."""
        self._thread.submit(break_session).result()

    def end(self) -> None:
        self._thread.submit(end_thread).result()
        self._thread.shutdown()


class Downloads:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def begin(self, client: Client, path: str = EXPORT) -> Downloading:
        begun = Downloading(client, path)
        self._stack.callback(begun.end)
        return begun


@pytest.fixture
def downloads(circle: Series) -> Iterator[Downloads]:
    builders.passed(circle, timezone.now())
    with ExitStack() as stack:
        yield Downloads(stack)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_superuser("ada")


@pytest.fixture
def browser(ada: User) -> Client:
    return logged_in(ada)


def program(user: User) -> Client:
    home, _ = Reporter.objects.get_or_create(name=HOME)
    text = ApiToken.objects.issue(user, "program", [READ], home)
    return Client(headers={"authorization": f"Bearer {text}"})


def test_a_third_download_of_a_user_is_told_to_wait(downloads: Downloads, browser: Client, ada: User) -> None:
    for client, path in ((browser, PAGE), (program(ada), EXPORT)):
        assert downloads.begin(client, path).answer.status_code == 200
    refused = program(ada).get(EXPORT)
    assert (refused.status_code, refused.json()["code"]) == (503, "busy")
    assert int(refused["Retry-After"]) > 0
    page = browser.get(PAGE)
    assert (page.status_code, page["Retry-After"]) == (503, refused["Retry-After"])
    assert "Downloads under way" in page.content.decode()
    other = logged_in(User.objects.create_superuser("bob"))
    assert other.get("/runs/runs.csv").status_code == 200
    assert browser.get("/runs/").status_code == 200, "only downloads are limited"


@pytest.mark.parametrize("end", ["read", "leave", "kill"])
def test_a_place_is_free_when_its_answer_has_ended(downloads: Downloads, browser: Client, end: str) -> None:
    begun = [downloads.begin(browser) for _ in range(AT_ONCE)]
    assert browser.get("/runs/runs.csv").status_code == 503
    getattr(begun[0], end)()
    assert eventually(lambda: browser.get("/runs/runs.csv").status_code == 200)


def test_a_download_that_fails_or_has_no_body_takes_no_place(downloads: Downloads, browser: Client) -> None:
    for path in (f"{EXPORT}?format=none", "/series/none/samples.csv", f"{EXPORT}?start=never"):
        assert 400 <= downloads.begin(browser, path).answer.status_code < 500
    assert browser.head(EXPORT).status_code == 200
    begun = [downloads.begin(browser) for _ in range(AT_ONCE)]
    assert [each.answer.status_code for each in begun] == [200, 200]
    assert [len(each.read()) > 100 for each in begun] == [True, True]


VIEWS = ("router.", "members_only", "accounts_only")
MARKS = ("StreamingHttpResponse", "attachment; ", "text/csv", "application/pdf")


def limited_views() -> Iterator[tuple[str, bool]]:
    """Yield each view whose module's functions, called by it, send a file; and whether it is limited."""
    for file in sorted(
        [*(ROOT / "monitor/web/api").glob("*.py"), *(ROOT / "monitor/web/pages").glob("*.py")]
    ):
        text = file.read_text(encoding="utf-8")
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        for name, node in functions.items():
            decorators = [ast.unparse(each) for each in node.decorator_list]
            is_view = any(each.startswith(VIEWS) for each in decorators)
            if is_view and sends_a_file(name, functions, set()):
                yield f"{file.stem}.{name}", "few_at_once" in decorators


def sends_a_file(name: str, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    seen.add(name)
    body = functions[name].body
    texts = {node.value for part in body for node in ast.walk(part) if isinstance(node, ast.Constant)}
    names = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    is_marked = any(mark in str(text) for mark in MARKS for text in texts) or "StreamingHttpResponse" in names
    called = (names & functions.keys()) - seen
    return is_marked or any(sends_a_file(each, functions, seen) for each in called)


def test_each_view_that_sends_a_file_is_limited() -> None:
    views = dict(limited_views())
    assert {"exports.export_series", "series.samples", "runs.table", "reports.pdf"} <= set(views)
    assert [name for name, is_limited in views.items() if not is_limited] == []
