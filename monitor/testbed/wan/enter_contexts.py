"""Enter many contexts at once: servers start in parallel, whatever one of them does."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")
_AT_ONCE = 4  # more on two processors only make each slower


def all_entered(
    last: contextlib.ExitStack, contexts: Sequence[contextlib.AbstractContextManager[Value]]
) -> list[Value]:
    """Enter all *contexts*, to be left by *last*; their values in order.

    Raises what the first that failed has raised, when the others are entered.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        entering = [pool.submit(context.__enter__) for context in contexts]
    for context, entered in zip(contexts, entering, strict=True):
        if entered.exception() is None:
            last.push(context)
    return [entered.result() for entered in entering]
