"""Texts of the cells of the tables about storage."""

from __future__ import annotations

NOTHING = "-"
OURS = "ours"


def number(value: float | None, factor: float = 1.0, *, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value * factor:,.{digits}f}"


def difference(own: float | None, published: float) -> str:
    return NOTHING if own is None else f"{own / published - 1:+.1%}"


def csv_cell(text: str) -> str | float:
    """Return *text* as a number if it is one, per cent as a share; empty without a value."""
    if text == NOTHING:
        return ""
    try:
        value = float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        return text
    return round(value / 100.0, 6) if text.endswith("%") else value
