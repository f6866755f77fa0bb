"""Enter contexts in parallel, so that servers start concurrently."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")
_AT_ONCE = 4  # more do not help on two processors


def enter_all(
    stack: contextlib.ExitStack, contexts: Sequence[contextlib.AbstractContextManager[Value]]
) -> list[Value]:
    """Enter all *contexts* and push them on *stack*; return their values in order.

    If contexts fail, all other contexts are entered, and then the exception of the first failure is raised.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        entering = [pool.submit(context.__enter__) for context in contexts]
    for context, entered in zip(contexts, entering, strict=True):
        if entered.exception() is None:
            stack.push(context)
    return [entered.result() for entered in entering]
