"""Parsing of a server's progress report on a third-party copy."""

from __future__ import annotations

from pathlib import Path

from reporters.tpc import CopyReport

REAL = (Path(__file__).parent / "data" / "tpc-xrootd.txt").read_bytes()


def fed(*pieces: bytes) -> CopyReport:
    report = CopyReport()
    for piece in pieces:
        report.feed(piece)
    report.end()
    return report


def test_markers_and_the_result_are_parsed_from_any_pieces() -> None:
    for pieces in ([REAL], [REAL[i : i + 7] for i in range(0, len(REAL), 7)]):
        report = fed(*pieces)
        assert (report.transferred_bytes, report.succeeded, report.failure) == (1_500_000_000, True, "")
        assert report.tail.endswith("End\nsuccess: Created\n")


def test_the_last_markers_of_all_stripes_are_added_up() -> None:
    marker = b"Perf Marker\n Stripe Index: %d\n Stripe Bytes Transferred: %d\nEnd\n"
    report = fed(marker % (0, 10), marker % (1, 5), marker % (0, 20), b"success")
    assert report.transferred_bytes == 25


def test_the_result_counts_only_after_its_complete_line() -> None:
    report = CopyReport()
    report.feed(b"succ")
    assert not report.succeeded
    report.feed(b"ess: Created\n")
    assert report.succeeded


def test_a_failure_counts_whatever_else_is_reported() -> None:
    assert (
        fed(b"success: Created\nfailure: rejected GET: 403\nsuccess\n").failure
        == "failure: rejected GET: 403"
    )
    assert fed(b"Failure: a\nfailure: b").failure == "Failure: a"


def test_other_text_is_no_result_and_is_bounded() -> None:
    report = fed(*[b"\xff" * 100_000] * 20, b"\nlast\n")
    assert (report.succeeded, report.failure, report.last_line) == (False, "", "last")
    assert len(report.tail) == 4000
    assert fed(b"Stripe Bytes Transferred: " + b"9" * 50_000).transferred_bytes < 10**18
    assert fed(b"").first_line == ""
