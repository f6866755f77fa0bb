from __future__ import annotations

import random
from statistics import fmean, stdev

import pytest

from forecasting import methods
from forecasting.base import Source
from forecasting.evaluation.study import METHODS, error_table
from forecasting.reading.histories import Kind, RunHistory
from forecasting.series import Observation

HOUR_SECONDS = 3600.0


def history(
    series: str, kind: Kind, values: list[float], *, metric: str = "total.seconds", group: str = "g"
) -> RunHistory:
    """Return a run each hour; that of the probe ends before that of the application starts."""
    after = 600.0 if kind == "application" else 0.0
    starts = [index * HOUR_SECONDS + after for index in range(len(values))]
    runs = [Observation(at, at + 300.0, value) for at, value in zip(starts, values, strict=True)]
    return RunHistory(group, Source(series, metric), kind, runs)


def loads(count: int, seed: int = 4) -> list[float]:
    draw = random.Random(seed)
    return [draw.uniform(10.0, 30.0) for _ in range(count)]


PROBED = loads(90)
PREDICTABLE = [100.0 + 3.0 * load for load in PROBED]  # known from the probe, and not from its own history


def test_the_methods_of_the_study_are_in_the_registry() -> None:
    assert {method.method for method in METHODS} <= set(methods.names())


def test_a_related_probe_is_chosen_over_the_own_history() -> None:
    cells = error_table([history("preco", "application", PREDICTABLE), history("gather", "probe", PROBED)])
    errors = {method: cell.relative_error for method, cell in cells["total.seconds"].cells.items()}
    assert errors["lrp"] == pytest.approx(0.0, abs=1e-9)
    assert errors["lrp_first"] == pytest.approx(0.0, abs=1e-9)
    assert (errors["nws"] or 0.0) > 0.05
    assert (errors["tsp_lrp"] or 0.0) > 0.05
    assert {cell.n for cell in cells["total.seconds"].cells.values()} == {80}


def test_a_metric_is_predicted_from_the_same_metric_of_the_probe() -> None:
    compute = "stage.compute.seconds"
    cells = error_table(
        [
            history("preco", "application", PREDICTABLE),
            history("preco", "application", PREDICTABLE, metric=compute),
            history("gather", "probe", loads(90, seed=9)),
            history("gather", "probe", PROBED, metric=compute),
            history("gather", "probe", PROBED, group="elsewhere"),
        ]
    )
    assert list(cells) == ["total.seconds", compute], "in the order of the published table"
    assert cells[compute].cells["lrp"].relative_error == pytest.approx(0.0, abs=1e-9)
    assert (cells["total.seconds"].cells["lrp"].relative_error or 0.0) > 0.05


def test_an_application_is_paired_with_each_probe_of_its_group() -> None:
    histories = [
        history("preco", "application", PREDICTABLE),
        history("gather", "probe", PROBED),
        history("circle", "probe", PROBED),
    ]
    assert error_table(histories)["total.seconds"].n == 160


def test_metrics_of_the_study_come_first_and_others_where_they_are_asked_for() -> None:
    own = history("preco", "application", PREDICTABLE[:45], metric="bytes")
    probed = history("gather", "probe", PROBED[:45], metric="bytes")
    assert list(error_table([own, probed])) == ["bytes"]
    both = [
        own,
        probed,
        history("preco", "application", PREDICTABLE[:45]),
        history("gather", "probe", PROBED[:45]),
    ]
    assert list(error_table(both)) == ["total.seconds"]
    assert list(error_table(both, wanted=["bytes"])) == ["bytes"]


def test_mean_and_deviation_are_of_all_runs_of_the_applications_each_counted_once() -> None:
    values = [4.0, 6.0, 8.0] * 15
    (column,) = error_table(
        [
            history("preco", "application", values),
            history("gather", "probe", PROBED),
            history("circle", "probe", PROBED),
            history("preco", "application", [106.0] * 45, group="other"),
            history("gather", "probe", PROBED, group="other"),
        ]
    ).values()
    assert (column.mean, column.stdev) == (fmean([*values, *[106.0] * 45]), stdev([*values, *[106.0] * 45]))


def test_without_pairs_there_is_nothing_to_compare() -> None:
    assert error_table([history("preco", "application", PREDICTABLE)]) == {}
