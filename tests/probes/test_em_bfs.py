"""External-memory BFS: its kernel against the known answer, damaged graphs, and runs."""

from __future__ import annotations

from math import comb
from pathlib import Path

import pytest

from probes.base import ProbeFailed
from probes.em_bfs import Tally, parse_tallies, search_metrics
from tests.probes.kernels import build, refusal, run
from tests.probes.runs import logged, metrics, run_locally

PRINTED = "direct 1\nadjacency 10 40960 0.5\nsort_write 4 4096 0.1\nsort_read 4 8192 0.2\ntraverse 16 5 1.0\n"
NAMES = ("adjacency", "sort_write", "sort_read", "traverse")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("em_bfs"), "em_bfs")


@pytest.mark.parametrize(
    ("dimension", "record", "memory"),
    [(2, 16, 4096), (3, 4096, 4096), (8, 64, 4096), (9, 1000, 4096), (11, 88, 65_536)],
)
def test_every_level_of_the_search_has_the_known_vertices(
    kernel: Path, tmp_path: Path, dimension: int, record: int, memory: int
) -> None:
    sizes = (dimension, record, 7, memory)
    run(kernel, "generate", tmp_path, *sizes)
    assert (tmp_path / "graph").stat().st_size == -(-(2**dimension) * record // 4096) * 4096
    _, tallies = parse_tallies(run(kernel, "traverse", tmp_path, *sizes), NAMES, "here")
    assert tallies["traverse"].operations == sum(comb(dimension, level) for level in range(dimension + 1))
    assert tallies["traverse"].size_bytes == dimension + 1


def test_another_seed_makes_another_graph(kernel: Path, tmp_path: Path) -> None:
    contents = set()
    for seed in (1, 2, 2):
        run(kernel, "generate", tmp_path, 5, 40, seed, 4096)
        contents.add((tmp_path / "graph").read_bytes())
    assert len(contents) == 2


def test_a_damaged_graph_gives_a_wrong_answer(kernel: Path, tmp_path: Path) -> None:
    run(kernel, "generate", tmp_path, 8, 64, 1, 4096)
    graph_file = tmp_path / "graph"
    graph_file.write_bytes(graph_file.read_bytes()[:64] * 256)  # all vertices have the same neighbours
    assert "wrong answer" in refusal(kernel, "traverse", tmp_path, 8, 64, 1, 4096)
    with (tmp_path / "graph").open("rb+") as graph:
        graph.write(b"\xff" * 16_384)
    assert "wrong answer" in refusal(kernel, "traverse", tmp_path, 8, 64, 1, 4096)


def test_a_graph_that_ends_too_early_is_reported(kernel: Path, tmp_path: Path) -> None:
    run(kernel, "generate", tmp_path, 8, 64, 1, 4096)
    with (tmp_path / "graph").open("rb+") as graph:
        graph.truncate(4096)
    assert "it ends too early" in refusal(kernel, "traverse", tmp_path, 8, 64, 1, 4096)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((1, 64, 1, 4096), "DIMENSION: 1 is not a number from 2 to 32"),
        ((8, 56, 1, 4096), "RECORD_BYTES: 56 is not a number from 64"),
        ((8, 65, 1, 4096), "RECORD_BYTES: 65 is not a multiple of 8"),
        ((8, 64, 1, 100), "MEMORY_BYTES: 100 is not a number from 4096"),
    ],
)
def test_the_kernel_refuses_unusable_sizes(
    kernel: Path, tmp_path: Path, sizes: tuple[int, ...], message: str
) -> None:
    assert message in refusal(kernel, "generate", tmp_path, *sizes)


def test_metrics_split_the_time_of_a_search() -> None:
    is_direct, tallies = parse_tallies(PRINTED, NAMES, "here")
    assert is_direct
    assert tallies["sort_read"] == Tally(4, 8192, 0.2)
    values = {metric.name: metric.value for metric in search_metrics(tallies)}
    assert values == {
        "traverse.seconds": 1.0,
        "adjacency.seconds": 0.5,
        "sort.seconds": pytest.approx(0.3),
        "other.seconds": pytest.approx(0.2),
        "sort.bytes_per_second": pytest.approx(40_960),
        "adjacency.operations_per_second": 20.0,
        "traverse.vertices_per_second": 16.0,
    }


@pytest.mark.parametrize("text", ["", PRINTED[:-20], PRINTED.replace("0.5", "half"), "direct 1\n"])
def test_unusable_output_of_the_search_is_a_failure(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of em_bfs at iu"):
        parse_tallies(text, NAMES, "iu")


def test_a_run_measures_the_graph_and_the_search(tmp_path: Path) -> None:
    report = run_locally("em_bfs", tmp_path, {"dimension": 7, "record_bytes": 64})
    assert report.outcome == "passed", report.reason
    assert {"generate.seconds", "adjacency.seconds", "sort.seconds"} <= metrics(report).keys()
    assert all("may use the page cache" in line for line in logged(report, "warning"))


def test_a_traced_run_has_the_seconds_of_its_calls_by_class(tmp_path: Path) -> None:
    report = run_locally("em_bfs", tmp_path, {"dimension": 7, "record_bytes": 64, "trace": True})
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    graph_bytes = 64 << 7
    assert values["io.write.bytes"] >= graph_bytes  # and the neighbours that it sorts
    assert values["io.read.bytes"] >= graph_bytes
    assert 0 < values["io.seconds"] < values["io.elapsed.seconds"]


@pytest.mark.parametrize("record", [64, 129])
def test_records_too_small_for_their_neighbours_are_refused(tmp_path: Path, record: int) -> None:
    report = run_locally("em_bfs", tmp_path, {"dimension": 16, "record_bytes": record})
    assert (report.outcome, "record_bytes: expected a multiple of 8" in report.reason) == ("broken", True)
