"""What looks alike is what Unicode's table of confusable characters says, and more."""

from __future__ import annotations

import pytest
from confusable_homoglyphs.confusables import confusables_data

from monitor.web.accounts.look_alikes import appearances
from monitor.web.accounts.users import is_foreign_name

MARK = "\N{LEFT-TO-RIGHT MARK}"  # around letters that are written from right to left


def are_alike(name: str, other: str) -> bool:
    return any(mine == theirs for mine, theirs in zip(appearances(name), appearances(other), strict=True))


def test_each_pair_of_the_table_looks_alike() -> None:
    """Of those of which names have both characters."""
    alike = {
        one.strip(MARK): [each["c"].strip(MARK) for each in them] for one, them in confusables_data.items()
    }
    pairs = [(one, other) for one, others in alike.items() for other in others]
    pairs = [pair for pair in pairs if all(map(is_foreign_name, pair))]
    assert len(pairs) > 8_000
    assert [pair for pair in pairs if not are_alike(*pair)] == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("modern", "modem"),
        ("Ill", "lII"),
        ("PauI", "paul"),
        ("r0ot", "ROOT"),
        ("soren", "s\N{LATIN SMALL LETTER O WITH STROKE}ren"),
        ("nikos", "n\N{LATIN SMALL LETTER I WITH ACUTE}kos"),
        ("stra\N{LATIN SMALL LETTER SHARP S}e", "STRASSE"),
    ],
)
def test_names_look_alike_in_any_case_and_with_any_mark(name: str, other: str) -> None:
    assert are_alike(name, other)
    assert are_alike(other, name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("ada", "adam"),
        ("ada", "bda"),
        ("user2", "user3"),
        ("\N{CJK UNIFIED IDEOGRAPH-5C71}", "\N{CJK UNIFIED IDEOGRAPH-5DDD}"),
        # The mark makes another syllable: ka, ga.
        ("\N{HIRAGANA LETTER KA}", "\N{HIRAGANA LETTER GA}"),
    ],
)
def test_other_names_do_not(name: str, other: str) -> None:
    assert not are_alike(name, other)
