"""The runner, a reduced run of everything, and that no row of the papers is left out."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import das, data, frontier, li_gao, regression, tipping, wang_tanaka, zhang
from experiments.__main__ import EXPERIMENTS, main
from experiments.data import Data
from experiments.runner import Cell, Options, Results, keep, plain, read, run


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick")
    assert main(["run", "all", "--quick", "--out", str(out)]) == 0
    return out


def records(out):
    return {name: record for experiment in EXPERIMENTS for name, record in read(out / f"{experiment}.json").items()}


def test_a_quick_run_computes_all_that_needs_no_files(quick):
    found = records(quick)
    wanted = [cell for module in EXPERIMENTS.values() for cell in module.cells(Options(quick=True))]
    without_files = {cell.name for cell in wanted if all(Data().has(name) for name in cell.needs)}
    assert found.keys() == without_files
    assert all(record["status"] == "done" for record in found.values())
    assert {name.split("/")[0] for name in without_files} == set(EXPERIMENTS)


def test_pages_link_figures_that_are_there_and_small(quick):
    for name in EXPERIMENTS:
        text = (quick / f"{name}.md").read_text()
        assert f"({name}.md)" in (quick / "README.md").read_text()
        for figure in [part.split(")")[0] for part in text.split("](")[1:]]:
            assert 0 < (quick / figure).stat().st_size < 60_000, figure
    assert len(list((quick / "figures").iterdir())) >= 6


def test_a_second_run_computes_nothing(quick):
    before = {name: (quick / f"{name}.json").stat().st_mtime_ns for name in EXPERIMENTS}
    assert main(["run", "all", "--quick", "--out", str(quick)]) == 0
    assert {name: (quick / f"{name}.json").stat().st_mtime_ns for name in EXPERIMENTS} == before


def test_missing_sets_are_named(quick):
    text = (quick / "README.md").read_text()
    for name in ("climate", "eth80", "internet_ads", "yale_faces", "ida_banana"):
        assert f"data missing: {name}" in text


def small(data, seed, size):
    if size < 0:
        raise ValueError("size = -1: expected a size")
    return {"numbers": np.random.default_rng(seed).normal(size=size)}


def cells(*sizes):
    return [Cell(f"test/{k}", small, {"size": size}) for k, size in enumerate(sizes)]


def test_a_failing_cell_stops_nothing_and_is_tried_again(tmp_path):
    assert run(cells(1, -1, 2), Data(), tmp_path, jobs=2) == ["test/1"]
    results = Results(cells(1, -1, 2), tmp_path, Data())
    assert [len(result["numbers"]) for result in results.done("test/")] == [1, 2]
    assert results.state_of("test/1") == "failed" and results.state("test/") == "2 of 3 cells, the others: failed"
    assert "size = -1" in read(tmp_path / "test.json")["test/1"]["message"]
    assert run(cells(1, -1, 2), Data(), tmp_path, jobs=1) == ["test/1"]


def test_a_failure_is_the_exit_code(tmp_path, monkeypatch):
    monkeypatch.setattr(tipping, "cells", lambda options: [Cell("tipping/clusters/0", small, {"size": -1})])
    assert main(["run", "tipping", "--quick", "--out", str(tmp_path)]) == 1
    assert "failed" in (tmp_path / "README.md").read_text()


def test_other_parameters_are_computed_again(tmp_path):
    run(cells(1), Data(), tmp_path, jobs=1)
    assert Results(cells(2), tmp_path, Data()).done("test/") == []
    run(cells(2), Data(), tmp_path, jobs=1)
    assert len(Results(cells(2), tmp_path, Data()).done("test/")[0]["numbers"]) == 2


def test_an_experiment_has_one_file_with_a_line_per_cell(tmp_path):
    for name in ("test/b/0", "test/a/10", "test/a/9"):
        keep({"name": name, "status": "failed"}, tmp_path)
    keep({"name": "test/a/9", "status": "done"}, tmp_path)
    keep({"name": "other/0", "status": "done"}, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.json", "test.json"]
    first, *lines, last = (tmp_path / "test.json").read_text().splitlines()
    found = [json.loads(line.rstrip(",")) for line in lines]
    assert (first, last) == ("[", "]")
    assert [record["name"] for record in found] == ["test/a/9", "test/a/10", "test/b/0"]
    assert [record["status"] for record in found] == ["done", "failed", "failed"]


def test_a_damaged_file_is_named_and_not_replaced(tmp_path):
    (tmp_path / "test.json").write_text('[\n{"name": "test/0"')
    with pytest.raises(ValueError, match="test.json is damaged"):
        run(cells(1), Data(), tmp_path, jobs=1)
    assert (tmp_path / "test.json").read_text() == '[\n{"name": "test/0"'


def test_the_committed_pages_have_their_cells():
    out = Path(__file__).parents[2] / "docs/results"
    text = (out / "README.md").read_text()
    done = [record for record in records(out).values() if record["status"] == "done"]
    assert f": {len(done)} of " in text
    # The detectors have not been compared in one full run yet.
    assert {record["name"].split("/")[0] for record in done} == set(EXPERIMENTS) - {"novelty"}


def test_no_table_of_a_paper_lacks_its_data():
    out = Path(__file__).parents[2] / "docs/results"
    for page in out.glob("*.md"):
        assert "data missing" not in page.read_text(), page.name
    found = records(out)
    for name in ("wang_tanaka", "tipping", "das", "li_gao", "zhang"):
        wanted = {cell.name for cell in EXPERIMENTS[name].cells(Options())}
        assert wanted == {one for one in found if one.startswith(f"{name}/")}
        assert {found[one]["status"] for one in wanted} == {"done"}


def test_the_positive_class_is_the_larger_one_or_the_one_that_is_named():
    labels = np.array([0, 1, 1, 1, 0])
    assert wang_tanaka.truth_of(labels).tolist() == [0, 1, 1, 1, 0]
    assert wang_tanaka.truth_of(labels, 0).tolist() == [1, 0, 0, 0, 1]
    asked = {cell.name: cell.parameters.get("positive") for cell in wang_tanaka.cells(Options())}
    assert asked["wang_tanaka/climate/0"] == 0 and asked["wang_tanaka/australian/0"] is None


def test_results_do_not_depend_on_processes_or_order(tmp_path):
    asked = tipping.cells(Options(quick=True))[:2]
    run(asked, Data(), tmp_path / "one", jobs=1)
    run(asked[::-1], Data(), tmp_path / "two", jobs=2)
    one, two = (Results(asked, tmp_path / name, Data()).done("tipping/") for name in ("one", "two"))
    assert len(one) == 2 and one == two


def test_a_cell_without_data_is_left_alone(tmp_path):
    cell = Cell("test/0", small, {"size": 1}, ("nowhere",))
    assert run([cell], Data(tmp_path), tmp_path, jobs=1) == []
    assert Results([cell], tmp_path, Data(tmp_path)).state("test/") == "data missing: nowhere"


def test_any_table_of_the_format_is_found_by_name(tmp_path):
    (tmp_path / "own.csv").write_text("a,b,label\n1,2,0\n3,4,1\n5,6,1\n")
    np.savez(tmp_path / "own_splits.npz", train=[[0, 1]], test=[[2]])
    own = Data(tmp_path)
    x, labels = own.load("own")
    assert x.tolist() == [[1, 2], [3, 4], [5, 6]] and labels.tolist() == [0, 1, 1]
    assert [part.tolist() for part in own.split("own", 0, 2, seed=0)] == [[0, 1], [2]]
    train, test = own.split("own", 1, 2, seed=0)  # no such split: a random one
    assert len(train) == 2 and sorted([*train, *test]) == [0, 1, 2]


def test_scaling_looks_at_training_rows_alone():
    x, rest = data.to_unit_range(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[4.0, 6.0]]))
    assert x.tolist() == [[0, 0], [1, 0]] and rest.tolist() == [[2, 1]]


def rows_of(page, *starts):
    return [line for line in page.splitlines() if line.startswith("| ") and any(start in line for start in starts)]


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """Pages of a run that has computed nothing and has no data."""
    out = tmp_path_factory.mktemp("empty")
    pages = {}
    for name, module in EXPERIMENTS.items():
        pages[name] = "\n".join(module.page(Results(module.cells(Options()), out, Data()), out))
    return pages


def test_every_row_of_wang_and_tanaka(empty):
    for number, name in ((3, "australian"), (4, "breast-cancer"), (5, "climate")):
        section = empty["wang_tanaka"].split(f"## Table {number}: {name}")[1].split("## ")[0]
        assert "data missing" in section.splitlines()[0]
        lines = rows_of(section, "SVM")
        assert [line.split(" | ")[0] for line in lines] == ["| SVM", "| KPCA+SVM", "| SKPCA-l1+SVM", "| SKPCA-l2,1+SVM"]
    # one number of each row of Tables 3, 4 and 5
    for value in "0.8461 0.8452 0.8394 0.8455 0.9611 0.962 0.9614 0.9626 0.947 0.9456 0.9411 0.9493".split():
        assert f"| {value} |" in empty["wang_tanaka"]


def test_every_row_of_tipping(empty):
    for start in ("kernels kept", *[f"| {q} |" for q in range(1, 26)]):
        assert rows_of(empty["tipping"], start)


def test_every_row_of_das(empty):
    for name, value in (
        ("mnist-400", 0.957),
        ("mnist-3000", 0.957),
        ("fashion-3000", 0.877),
        ("satimage-2", 0.935),
        ("eth-80", 0.836),
        ("internet-ads", 0.739),
    ):
        section = empty["das"].split(f"## {name}: data missing")[1].split("## ")[0]
        assert [rows_of(section, f"| {method} |") for method in das.METHODS].count([]) == 0
        assert f"| naive thresholding | {value} |" in section
    table = empty["das"].split("## Table I")[1]
    assert len(rows_of(table, *[f"| {trial} | 0.9" for trial in range(1, 11)])) == 10


def test_every_row_of_li_and_gao(empty):
    names = "banana image flare-solar splice thyroid titanic orl yale wdbc".split()
    assert list(li_gao.SETS) == names
    for name in names:
        lines = rows_of(empty["li_gao"], f"| {name},")
        for classifier in ("1-NN", "SVM"):
            for method in ("KPCA", "SKPCA", "SDKPCA"):
                assert any(f"| {classifier} | {method}" in line for line in lines)
    for (
        value
    ) in "13.6 4.8 31.4 8.6 2.1 22.8 14.2 5.4 34.2 9.4 2.2 23.2 13.9 5.1 32.8 9.0 24.4 15.3 17.5 18.7 4.9".split():
        assert f"| {value} |" in empty["li_gao"]


def test_every_row_of_zhang(empty):
    linear, kernel, nine, eleven = [part.split("## ")[0] for part in empty["zhang"].split("## Table")[1:]]
    for part, names, methods in (
        (linear, "normal ringnorm twonorm waveform image german thyroid", 1),
        (kernel, "banana breast_cancer diabetis german flare_solar thyroid", 1),
        (nine, "banana breast_cancer diabetis german flare_solar thyroid", 2),
        (eleven, "thyroid german image waveform twonorm ringnorm", 2),
    ):
        for name in names.split():
            assert len(rows_of(part, f"| {name},")) == 3 * methods
    for value in (7966, 4886, 6335, 1028, 34, 76, 193, 398, 131):
        assert f"| {value} |" in empty["zhang"]


def test_every_set_of_the_frontier(empty):
    for name in frontier.SETS:
        assert f"## {name}: " in empty["frontier"]


def regression_results(tmp_path, **cells):
    """Results of a run whose cells gave this."""
    asked = {cell.name: cell for cell in regression.cells(Options())}
    for name, result in cells.items():
        cell = asked[f"regression/{name.replace('_', '-')}/0"]
        record = {"name": cell.name, "parameters": plain(cell.parameters), "status": "done"}
        keep(record | {"result": result, "seconds": 0}, tmp_path)
    return Results(list(asked.values()), tmp_path, Data())


def test_a_gap_above_its_tolerance_or_a_target_missed_in_silence_fails_its_claim(tmp_path):
    fit = {"method": "l21", "fraction": 0.5, "points": 3, "objective": 1.0, "rounds": 2}
    good = [fit | {"tolerance": 1e-6, "gap": 1e-7, "converged": True}]
    bad = [*good, fit | {"tolerance": 1e-10, "gap": 1e-9, "converged": True}, good[0] | {"converged": False}]
    rest = [None, None, None]  # three tables more
    assert regression.certified(regression_results(tmp_path, gaps_digits=good)).checks == [True, *rest]
    assert regression.certified(regression_results(tmp_path, gaps_digits=bad)).checks == [True, False, False, *rest]

    def told(points, fidelity, *notes):
        return {"points": points, "fidelity": fidelity, "notes": notes}

    kept = {"l21": told(30, 0.9), "l1": told(28, 0.89, "no penalty selects as many"), "elastic-net": told(28, 1.0)}
    kept["threshold"] = told(31, 0.95)
    found = {
        method: [{"support": 30, "reached": one}, {"fidelity": 0.9, "reached": one}] for method, one in kept.items()
    }
    results = regression_results(tmp_path, targets_digits=found)
    assert regression.sized(results).checks == [True, True, False, False, *rest, None]
    assert regression.held(results).checks == [True, False, True, True, *rest, None]


def test_published_tables_are_whole():
    assert {len(values) for one in wang_tanaka.PUBLISHED.values() for values in one.values()} == {5}
    assert len(das.TABLE_1) == 10
    for table in (zhang.LINEAR, zhang.KERNEL, zhang.TABLE_9, zhang.TABLE_11):
        assert {len(column) for _, *columns in table.values() for column in columns} == {3}
