"""A file of signatures is refused whole, with the line and the reason of each error."""

from __future__ import annotations

import pytest

from monitor.analysis.signatures.loading import read
from monitor.core.yamlfile.problems import InvalidYamlFile
from monitor.models.failure_signature import Category, Severity

VALID = b"""\
tape-busy:
  title: The tape robot is busy
  category: storage
  severity: minor
  patterns: ['no free drive']
"""

BROKEN = {
    "empty": (b"", "1:1: the file is empty; expected signatures by name"),
    "a list": (b"- a\n", "1:1: expected a mapping, got "),
    "no YAML": (b"a: [\n", "2:1: not YAML: "),
    "twice": (VALID + VALID, "6:1: "),
    "a bad name": (
        VALID.replace(b"tape-busy", b"Tape busy"),
        "1:1: signature Tape busy: expected a name of ",
    ),
    "unknown": (
        VALID.replace(b"tape-busy", b"unknown"),
        "1:1: signature unknown: unknown is what no signature",
    ),
    "no title": (
        b"a:\n  category: storage\n  severity: minor\n  patterns: [x]\n",
        'signature a, key "title": it is missing',
    ),
    "an unknown category": (
        VALID.replace(b"storage", b"tape"),
        '3:3: signature tape-busy, key "category": expected ',
    ),
    "an unknown key": (
        VALID + b"  paterns: [a]\n",
        '6:3: signature tape-busy, key "paterns": unknown key; did you mean "patterns"?',
    ),
    "no pattern": (
        VALID.replace(b"['no free drive']", b"[]"),
        '5:3: signature tape-busy, key "patterns": expected at least 1',
    ),
    "a text as patterns": (VALID.replace(b"['no free drive']", b"drive"), "did you mean [drive]?"),
    "a broken pattern": (
        VALID.replace(b"no free", b"(no free"),
        '5:14: signature tape-busy, key "patterns[0]": not a regular expression of RE2: missing )',
    ),
    "a look-ahead": (
        VALID.replace(b"no free", b"(?=no) free"),
        "not a regular expression of RE2: invalid perl operator",
    ),
    "a back-reference": (
        VALID.replace(b"no free", b"(n)o \\1"),
        "not a regular expression of RE2: invalid escape sequence",
    ),
    "a pattern that matches everything": (VALID.replace(b"no free drive", b".*"), "it matches an empty text"),
    "a huge repetition": (
        VALID.replace(b"no free drive", b"(a{1000}){1000}"),
        "not a regular expression of RE2: ",
    ),
    "a huge pattern": (VALID.replace(b"no free drive", b"a" * 1001), "at most 1000 characters"),
    "a precedence that is no number": (
        VALID + b"  precedence: high\n",
        '6:3: signature tape-busy, key "precedence": expected a whole number',
    ),
    "a bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"b%d: &b%d [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n"
            % ((i, i) + ((b"b%d" % (i - 1)) if i else b"a",) * 9)
            for i in range(9)
        ),
        "more than 500,000 values",
    ),
}


def test_a_valid_file_gives_its_signatures() -> None:
    (signature,) = read(VALID, "tapes.yaml")
    assert (signature.name, signature.category, signature.severity) == (
        "tape-busy",
        Category.STORAGE,
        Severity.MINOR,
    )
    assert signature.counts_against_site


@pytest.mark.parametrize(("category", "counts"), [("user", False), ("credential", False), ("network", True)])
def test_the_category_decides_whether_a_site_is_blamed_unless_the_file_says(
    category: str, counts: bool
) -> None:
    content = VALID.replace(b"storage", category.encode())
    assert read(content, "a.yaml")[0].counts_against_site is counts
    assert read(content + b"  counts_against_site:\n", "a.yaml")[0].counts_against_site is counts
    said = content + f"  counts_against_site: {str(not counts).lower()}\n".encode()
    assert read(said, "a.yaml")[0].counts_against_site is not counts


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_with_line_and_reason(case: str) -> None:
    content, message = BROKEN[case]
    with pytest.raises(InvalidYamlFile) as caught:
        read(content, "mine.yaml")
    assert str(caught.value).startswith("mine.yaml:")
    assert message in str(caught.value)


def test_all_errors_of_a_file_are_named_at_once() -> None:
    content = VALID.replace(b"storage", b"tape").replace(b"no free", b"(no free") + b"  when: now\n"
    with pytest.raises(InvalidYamlFile) as caught:
        read(content, "mine.yaml")
    assert [problem.position.line for problem in caught.value.problems] == [3, 5, 6]
