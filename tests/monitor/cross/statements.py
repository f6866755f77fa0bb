"""Let the statements of a page fail, one after the other, and say what is wrong with the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db import DataError, connection, transaction
from django.http import HttpResponse
from django.test import Client

from monitor.web.pages import public
from tests.monitor.cross import judge

MOST_STATEMENTS = 300  # of a page
# Outside of parts, beyond session and user: of the object of the page, its permissions, and its form.
MOST_OUTSIDE = 8
_FRAME = ("django_session", "auth_user")
_NAVIGATION = 'aria-label="Main"'
_OF_TRANSACTIONS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


@dataclass
class FailingStatement:
    """Wraps the execution of statements; number *number*, from 1, raises an error of the driver."""

    number: int
    count: int = 0
    text: str = ""  # empty: there were fewer statements

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: Mapping[str, Any],
    ) -> Any:
        if not sql.startswith(_OF_TRANSACTIONS):
            self.count += 1
            if self.count == self.number:
                self.text = sql
                raise DataError("planted")
        return execute(sql, params, many, context)


def wrong_without_statements(client: Client, path: str) -> Iterator[str]:
    """Yield in words what is wrong with the page at *path* while one of its statements fails.

    The page says that a part could not be computed. A statement outside of parts, of which there are
    few, fails the page, which then has its navigation.
    """
    client.raise_request_exception = False
    outside = []
    for number in range(1, MOST_STATEMENTS):
        answer, statement = _answer_without(client, path, number)
        if not statement:
            break
        text = answer.content.decode()
        if answer.status_code == 500 and "could not be computed" in text and _NAVIGATION in text:
            outside.append(statement)
        elif answer.status_code != 200 or judge.FAILED_PART not in text:
            yield f"{path} without {statement[:120]!r}: {answer.status_code}, without the sentence"
    else:
        yield f"{path} makes {MOST_STATEMENTS} statements or more"
    own = [each for each in outside if not any(f'FROM "{table}"' in each for table in _FRAME)]
    if len(own) > MOST_OUTSIDE:
        yield f"{path} makes {len(own)} statements outside of parts: {', '.join(each[:60] for each in own)}"


def _answer_without(client: Client, path: str, number: int) -> tuple[HttpResponse, str]:
    """Return the answer of *path* while statement *number* fails, and that statement; empty without one."""
    cache.delete(public.CACHED)
    failing = FailingStatement(number)
    with transaction.atomic():
        with connection.execute_wrapper(failing):
            answer: Any = client.get(path)
        transaction.set_rollback(True)
    return answer, failing.text
