"""The study, repeated by runs that really ran: an hour, by ``make study``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forecasting.evaluation.published_predictions import ERRORS
from tests.monitor.testbed.demo.demo_process import DemoProcess

ROUNDS = int(os.environ.get("GRIDCAST_STUDY_ROUNDS", "0"))
SCALE = 40
LONGEST_ROUND_SECONDS = 170.0
LEAST_SCORED = 50


@pytest.mark.grid
@pytest.mark.skipif(not ROUNDS, reason="it takes an hour: `make study` runs it")
def test_a_demo_that_ran_has_the_errors_of_the_published_total(
    start_demo: Callable[..., DemoProcess], tmp_path: Path
) -> None:
    demo = start_demo("--weather=teragrid", f"--rounds={ROUNDS}", f"--scale={SCALE}", "--exit")
    assert demo.process.wait(ROUNDS * LONGEST_ROUND_SECONDS) == 0, demo.output()
    html, pdf = tmp_path / "study.html", tmp_path / "study.pdf"
    made = demo.command("report", "study", "--json", f"--html={html}", f"--pdf={pdf}")
    assert made.returncode == 0, made.stderr
    document = json.loads(made.stdout)
    assert (document["grid"], document["seconds_of_the_grid_per_second"]) == ("teragrid", SCALE)
    cells = document["predictions"]["metrics"]["total.seconds"]["cells"]
    for method in ("nws", "lrp"):
        assert cells[method]["n"] >= LEAST_SCORED
        error = 100 * cells[method]["relative_error"]
        print(f"{method}: {error:.2f} %, published {ERRORS[method]['total.seconds'].percent} %")
        assert error == pytest.approx(ERRORS[method]["total.seconds"].percent, abs=4.0)
    assert "Predictions of preco from gather" in html.read_text(encoding="utf-8")
    assert pdf.read_bytes().startswith(b"%PDF")
