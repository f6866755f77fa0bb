"""CPU time as a function of the size of the input: proofs that need no absolute duration."""

from __future__ import annotations

import time
from collections.abc import Callable

_GROWTH = 16
_REPETITIONS = 5


def assert_linear(work: Callable[[str], object], text_of: Callable[[int], str], size: int) -> None:
    """Assert that CPU time grows about linearly with *size*, not quadratically.

    An input that is 16 times larger may take 80 times the CPU time; with quadratic work it takes 256 times.
    """
    small, large = (
        min(_cpu_seconds(work, text_of(length)) for _ in range(_REPETITIONS))
        for length in (size // _GROWTH, size)
    )
    assert large < 5 * _GROWTH * max(small, 1e-4), f"{small:.6f} s, then {large:.6f} s"


def _cpu_seconds(work: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    work(text)
    return time.thread_time() - started
