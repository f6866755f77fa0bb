"""Random cron expressions that are well formed; some never match."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from reporters.cron import InvalidSchedule

Parsed = TypeVar("Parsed")

MONTHS = ["jan", "FEB", "Mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "MON", "Tue", "wed", "thu", "fri", "sat"]


def expressions() -> st.SearchStrategy[str]:
    fields = st.tuples(
        _field(0, 59, 59), _field(0, 23, 23), _field(1, 31, 28), _field(1, 12, 12), _field(0, 7, 6)
    )
    return st.one_of(fields.map(" ".join), _named(), st.sampled_from(["@hourly", "@daily", "@weekly"]))


def unless_never(parse: Callable[[], Parsed]) -> Parsed:
    """Return the result of *parse*, or reject the drawn example if no day ever matches it."""
    try:
        return parse()
    except InvalidSchedule as refusal:
        if "never" not in str(refusal):
            raise
        reject()


def _named() -> st.SearchStrategy[str]:
    weekdays = st.one_of(st.sampled_from([*WEEKDAYS, "mon-FRI", "tue-sat/2", "fri-7"]), _field(0, 7, 6))
    months = st.one_of(st.sampled_from([*MONTHS, "jan-jun", "feb-NOV/3"]), _field(1, 12, 12))
    return st.builds(
        "{} {} {} {} {}".format, _field(0, 59, 59), st.just("*/6"), st.just("*"), months, weekdays
    )


def _field(lowest: int, highest: int, highest_hashed: int) -> st.SearchStrategy[str]:
    item = st.one_of(_plain(lowest, highest), _hashed(lowest, highest_hashed))
    return st.one_of(st.just("*"), item, st.lists(item, min_size=1, max_size=4).map(",".join))


@st.composite
def _plain(draw: st.DrawFn, lowest: int, highest: int) -> str:
    first, last = sorted(draw(st.tuples(*[st.integers(lowest, highest)] * 2)))
    shape = draw(st.sampled_from(["{a}", "0{a}", "{a}-{b}", "{a}-{b}/{n}", "{a}/{n}", "*/{n}"]))
    if "/" in shape:
        start, end = (lowest if "*" in shape else first), (last if "{b}" in shape else highest)
        if start == end:
            return str(start)
        return shape.format(a=first, b=last, n=draw(st.integers(1, end - start)))
    return shape.format(a=first, b=last)


@st.composite
def _hashed(draw: st.DrawFn, lowest: int, highest: int) -> str:
    first, last = sorted(draw(st.tuples(*[st.integers(lowest, highest)] * 2)))
    shape = draw(st.sampled_from(["H", "?", "h({a}-{b})", "H({a}-{b})/{n}", "H/{n}", "?-{b}/{n}"]))
    start, end = (first if "{a}" in shape else lowest), (last if "{b}" in shape else highest)
    if "/" in shape and start == end:
        return "H"
    return shape.format(a=first, b=last, n=draw(st.integers(1, max(1, end - start))))
