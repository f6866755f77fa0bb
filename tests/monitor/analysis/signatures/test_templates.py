"""Templates of unknown texts: variable parts are masked, and different causes stay apart, in any order."""

from __future__ import annotations

import random

import pytest

from monitor.analysis.signatures.templates import MARKS, MOST_CHARACTERS, Template, label, masked, mine


def shown(text: str) -> str:
    """Return the masked line of *text*, with names of the marks."""
    line = " ".join(masked(text).texts)
    return "".join(f"<{label(letter)}>" if letter in MARKS else letter for letter in line)


def mined(texts: list[str]) -> list[tuple[str, int]]:
    """Return the templates of *texts* with names of the marks, and how many lines each has."""
    return [(described(template), len(template.lines)) for template in mine([masked(text) for text in texts])]


def described(template: Template) -> str:
    return "".join(f"<{label(letter)}>" if letter in MARKS else letter for letter in " ".join(template.words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job 8812 ended", "job <number> ended"),
        ("cannot open /scratch/run-12/a.dat, giving up", "cannot open <path>, giving up"),
        ("cannot open '~jdoe/a b'", "cannot open '<path> b'"),
        ("se1.grid.example.org refused", "<host> refused"),
        ("10.0.0.17:2811 refused", "<host>:<number> refused"),
        ("at 2026-03-01T12:00:00.5Z: late", "at <time>: late"),
        ("Mon Mar  2 12:00:07 2026 late", "<time> late"),
        ("lease 0xDEADBEEF lost", "lease <hex> lost"),
        ("object 9f86d081884c7d65 lost", "object <hex> lost"),
        ("id 123e4567-e89b-12d3-a456-426614174000 lost", "id <uuid> lost"),
        ("get https://se.example.org/a?b=1, failed", "get <url>, failed"),
        ("mail to jdoe@cern.ch bounced", "mail to <address> bounced"),
        ("numpy.linalg.LinAlgError: Singular matrix", "numpy.linalg.LinAlgError: Singular matrix"),
        ("a\t\tb", "a<gap>b"),
        ("\x00\x01\x02 core", "<bytes> core"),
        ("decade added a facade", "decade added a facade"),
    ],
)
def test_variable_parts_are_masked_and_words_are_not(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_the_line_of_a_text_is_its_first_one_and_that_of_a_traceback_its_last_one() -> None:
    assert shown("\n  the beam is off\r\nsee the log") == "the beam is off"
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 3\nRuntimeError: no beam\n'
    assert shown(traceback) == "RuntimeError: no beam"


def test_lines_that_differ_in_names_share_a_template_with_their_punctuation() -> None:
    texts = [f"queue '{name}' is frozen by operator" for name in ("short", "long", "gpu", "test", "debug")]
    assert mined(texts) == [("queue '<word>' is frozen by operator", 5)]


def test_lines_that_differ_in_a_plain_word_have_different_causes() -> None:
    texts = ["the server certificate is expired now", "the server certificate is revoked now"]
    assert len(mined(texts)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("job 12 finished with error code 43", "job 13 finished with error code 69"),
        ("ORA-01017: the logon of 12 was denied", "ORA-12514: the logon of 13 was denied"),
        ("request 12 got E_NO_TAPE from the robot", "request 13 got E_NO_ARM from the robot"),
    ],
)
def test_lines_with_different_codes_have_different_causes(first: str, second: str) -> None:
    assert len(mined([first, second] * 5)) == 2


def test_templates_do_not_depend_on_the_order_of_the_texts() -> None:
    draw = random.Random(7)
    names = ["anna", "bert", "carl", "dora", "emil", "fritz"]
    texts = [f"user {draw.choice(names)} has no slot on cn{draw.randrange(99)}" for _ in range(40)]
    texts += [f"frobnicator {number} is out of phase" for number in range(40)]
    expected = mined(texts)
    for _ in range(5):
        draw.shuffle(texts)
        assert mined(texts) == expected


@pytest.mark.parametrize(
    "text",
    ["", "x" * 10**6, "a " * 10**6, "/" * 10**6, "a." * 10**6, "@" * 10**6, "\n" * 10**6, "\ue000 \ue00a"],
)
def test_huge_and_hostile_texts_are_cut(text: str) -> None:
    line = masked(text)
    assert sum(len(word.raw) + 1 for word in line.words) <= MOST_CHARACTERS + 1
    assert len(mine([line, line])) == 1


def test_a_cut_line_is_not_whole() -> None:
    assert masked("word " * 100).is_whole is False
    assert masked("word " * 10).is_whole is True


def test_texts_without_end_have_a_bounded_number_of_templates() -> None:
    draw = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [" ".join("".join(draw.choices(letters, k=6)) for _ in range(8)) for _ in range(500)]
    assert len(mined(texts)) == 100
