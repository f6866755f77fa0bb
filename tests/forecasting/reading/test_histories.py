from __future__ import annotations

from pathlib import Path

import pytest

from forecasting.base import Source
from forecasting.reading.histories import RunHistory, predictor_values_for, read
from forecasting.reading.tables import UnreadableFile
from forecasting.series import Observation

HEADER = "group,series,kind,started_at,ended_at,value"


def written(directory: Path, *lines: str, header: str = HEADER, name: str = "runs.csv") -> str:
    file = directory / name
    file.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return str(file)


def test_runs_are_sorted_by_their_start_and_known_at_their_end(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "g,app,application,20,25,2",
        "g,app,application,10,30,1",
        "g,ping,probe,1,2,3",
        "h,app,probe,1,2,3",
    )
    histories = read([file])
    assert [str(history) for history in histories] == ["g app", "g ping", "h app"]
    assert histories[0] == RunHistory(
        "g", Source("app", ""), "application", [Observation(10.0, 30.0, 1.0), Observation(20.0, 25.0, 2.0)]
    )


def test_several_files_are_as_one(tmp_path: Path) -> None:
    early = written(tmp_path, "g,app,application,1,2,3")
    late = written(tmp_path, "g,app,application,3,4,5", name="late.csv")
    assert [observation.value for observation in read([late, early])[0].observations] == [3.0, 5.0]


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (f"{HEADER},metric", "g,preco,application,1,2,3,total.seconds"),
        (HEADER, "g,preco:total.seconds,application,1,2,3"),
    ],
)
def test_a_metric_is_named_by_its_column_or_behind_a_colon(tmp_path: Path, header: str, line: str) -> None:
    (histories,) = read([written(tmp_path, line, header=header)])
    assert histories.source == Source("preco", "total.seconds")


def test_a_colon_alone_makes_no_metric(tmp_path: Path) -> None:
    (histories,) = read([written(tmp_path, "g,Redis: get,application,1,2,3")])
    assert histories.source == Source("Redis: get", "")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["g,a,app,1,2,3"], "line 2, kind: expected application or probe, got 'app'"),
        (["g,,probe,1,2,3"], "line 2, series: expected a text, got ''"),
        (["g,a,probe,9,2,3"], "line 2, ended_at: expected no earlier time than started_at, got '2'"),
        (["g,a,probe,1,2,nan"], "line 2, value: expected a finite number of at most 1e+300, got 'nan'"),
        (["g,a,probe,1,2,3", "g,b,probe,1,2,3", "g,a,probe,1,2,3"], "line 4: it repeats the run of "),
        (["g,a,probe,1,2,3", "g,a,application,2,3,3"], "line 3, kind: expected probe as in the rows"),
    ],
)
def test_invalid_cells_are_refused_with_their_place(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(UnreadableFile) as refused:
        read([written(tmp_path, *lines)])
    assert message in str(refused.value)


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "g,a,probe,1,2,3")
    with pytest.raises(UnreadableFile, match="it repeats the run"):
        read([file, file])


def test_predictors_are_the_probes_of_a_group_and_for_an_application_its_own_other_metrics(
    tmp_path: Path,
) -> None:
    file = written(
        tmp_path,
        "g,app:total.seconds,application,1,2,10",
        "g,app:stage.compute.seconds,application,1,2,20",
        "g,other:total.seconds,application,1,2,30",
        "g,ping:total.seconds,probe,1,2,40",
        "g,pong:total.seconds,probe,1,2,50",
        "g,pong:stage.compute.seconds,probe,1,2,60",
        "h,ping:total.seconds,probe,1,2,70",
    )
    histories = {history.source: history for history in read([file]) if history.group == "g"}
    total = histories[Source("app", "total.seconds")]
    assert [
        (source, observation.value) for source, observation in predictor_values_for(total, read([file]))
    ] == [
        (Source("", "stage.compute.seconds"), 20.0),
        (Source("ping", "total.seconds"), 40.0),
        (Source("pong", "stage.compute.seconds"), 60.0),
        (Source("pong", "total.seconds"), 50.0),
    ]
    ping = histories[Source("ping", "total.seconds")]
    assert [
        (source, observation.value) for source, observation in predictor_values_for(ping, read([file]))
    ] == [(Source("pong", "total.seconds"), 50.0)]
