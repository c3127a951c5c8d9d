"""Files of monitors: ours with any damage, and the csv files of msprobe's monitor, both generations."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.analysis.monitor.anomalies import find_anomalies
from dumpscope.analysis.monitor.heat import map_run
from dumpscope.errors import DumpscopeError, NotFoundError, UnreadableError
from dumpscope.readers.monitors import own_files
from dumpscope.readers.monitors.opening import FollowedRun, open_monitor
from dumpscope_format.monitor import FIRST_LINE, Group, Layout, header_frame, layout_frame, values_frame

LAYOUT = Layout(
    0, ("loss",), (Group("grad_reduced", ("norm", "nans"), ("b", "a")), Group("exp_avg", ("norm",), ("a",)))
)
STEPS = 6


def contents(first: int = 0) -> bytes:
    """A file of six steps: step s has the numbers 5s, 5s+1..."""
    frames = [
        values_frame(LAYOUT, first + step, [step / 8], struct.pack("<5f", *range(5 * step, 5 * step + 5)))
        for step in range(STEPS)
    ]
    return FIRST_LINE + header_frame({"parameters": {"a": 1, "b": 2}}) + layout_frame(LAYOUT) + b"".join(frames)


def test_a_file_gives_tables_in_the_order_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "rank3.monitor").write_bytes(contents())
    run = open_monitor(tmp_path)
    (rank,) = run.ranks
    assert (run.tool, run.problems, rank.rank) == ("dumpscope", (), 3)
    assert rank.metrics == {"grad_reduced": ("norm", "nans"), "exp_avg": ("norm",)}
    assert list(rank.metrics) == ["grad_reduced", "exp_avg"]
    found = rank.load("grad_reduced")
    assert (found.names, found.statistics, found.steps.tolist()) == (("a", "b"), ("norm", "nans"), list(range(STEPS)))
    assert found.values[2].tolist() == [[12, 13], [10, 11]]
    assert rank.load("exp_avg").column("norm").tolist() == [[5 * step + 4] for step in range(STEPS)]
    assert rank.scalars["loss"][1].tolist() == [step / 8 for step in range(STEPS)]
    assert open_monitor(tmp_path / "rank3.monitor").ranks[0].last_step == STEPS - 1


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_damage_leaves_the_other_steps_as_they_are(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = contents()
    at = data.draw(st.integers(0, len(whole) - 1))
    kind = data.draw(st.sampled_from(["cut", "change", "insert", "remove"]))
    damaged = {
        "cut": whole[:at],
        "change": whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :],
        "insert": whole[:at] + data.draw(st.binary(min_size=1, max_size=40)) + whole[at:],
        "remove": whole[:at] + whole[at + data.draw(st.integers(1, 40)) :],
    }[kind]
    path = tmp_path_factory.mktemp("damage") / "rank0.monitor"
    path.write_bytes(damaged)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_files, "PIECE", data.draw(st.sampled_from([33, 200, 1 << 20])))
        try:
            run = open_monitor(path)
        except DumpscopeError:
            return
    found = run.ranks[0].load("grad_reduced")
    for row, step in enumerate(found.steps.tolist()):
        names = [found.names.index(name) for name in ("b", "a")]
        assert found.values[row, names].ravel().tolist() == list(range(5 * step, 5 * step + 4))
    if kind == "cut" and len(found.steps) < STEPS:
        assert found.steps.tolist() == list(range(len(found.steps)))


def test_a_resumed_run_replaces_the_steps_that_it_computed_again(tmp_path: Path) -> None:
    (tmp_path / "rank0.monitor").write_bytes(contents())
    (tmp_path / "rank0-1.monitor").write_bytes(contents(first=4))
    found = open_monitor(tmp_path).ranks[0].load("grad_reduced")
    assert found.steps.tolist() == list(range(10))
    assert found.values[4].tolist() == [[2, 3], [0, 1]]


V1 = "vpp_stage,name,step,norm,min,max,nans,shape,dtype\n"
V2 = "vpp_stage,step,module_name,scope,min,max,mean,norm,nans\n"


def test_csv_files_of_msprobes_monitor_open(tmp_path: Path) -> None:
    for rank in (0, 1):
        folder = tmp_path / f"Nov30_09-02-47-rank{rank}-07b0d9f7"
        folder.mkdir()
        (folder / "grad_reduced_0-1.csv").write_text(
            V1 + '0,fc.weight,0,1.5,-1,1,0,"[2, 2]",torch.float32\n1,fc.weight,0,2.5,-1,1,0,"[2]",torch.float32\n'
            f"0,fc.weight,1,nan,nan,nan,4,\n0,fc.weight,2,nan,nan,nan,nan,\n0,torn\n1,fc.weight,1,{rank},0,0,0,,\n"
        )
        (folder / "grad_reduced_2-3.csv").write_text(V1 + "0,fc.weight,2,inf,0,inf,0,,\n")
        (folder / "stack_info.csv").write_text("module_name,stack_info\n")
    run = open_monitor(tmp_path)
    assert (run.tool, [rank.rank for rank in run.ranks], len(run.problems)) == ("msprobe", [0, 1], 2)
    found = run.ranks[1].load("grad_reduced")
    assert found.names == ("fc.weight", "1:fc.weight")
    assert found.statistics == ("norm", "min", "max", "nans")
    np.testing.assert_array_equal(found.column("norm"), [[1.5, 2.5], [np.nan, 1.0], [np.inf, np.nan]])
    assert found.present.tolist() == [[True, True], [True, True], [True, False]]


def test_csv_files_of_the_second_generation_are_told_apart_by_scope(tmp_path: Path) -> None:
    folder = tmp_path / "rank_5"
    folder.mkdir()
    (folder / "weight_grad_step0-9.csv").write_text(
        V2 + "0,3,fc.weight,unreduced,0,1,0.5,2,0\n0,3,fc.weight,reduced,0,1,0.5,1,0\n"
    )
    (rank,) = open_monitor(tmp_path).ranks
    assert (rank.rank, tuple(rank.metrics)) == (5, ("grad_unreduced", "grad_reduced"))
    assert rank.load("grad_reduced").column("norm").tolist() == [[1.0]]
    assert rank.load("grad_unreduced").column("norm").tolist() == [[2.0]]


def test_a_statistic_that_a_resumed_run_no_longer_takes_is_absent_and_not_nan(tmp_path: Path) -> None:
    other = Layout(0, (), (Group("grad_reduced", ("nans",), ("b", "a")),))
    frames = [values_frame(other, step, [], struct.pack("<2f", 7, 8)) for step in (6, 7)]
    (tmp_path / "rank0.monitor").write_bytes(contents())
    (tmp_path / "rank0-1.monitor").write_bytes(FIRST_LINE + layout_frame(other) + b"".join(frames))
    folder = tmp_path / "csv" / "rank_0"
    folder.mkdir(parents=True)
    (folder / "grad_reduced_0-0.csv").write_text("vpp_stage,name,step,norm,nans\n0,a,0,1.5,0\n")
    (folder / "grad_reduced_1-1.csv").write_text("vpp_stage,name,step,nans\n0,a,1,7\n")
    for path, steps in ((tmp_path, STEPS), (tmp_path / "csv", 1)):
        rank = open_monitor(path).ranks[0]
        for found in (rank.load("grad_reduced"), rank.load("grad_reduced", "norm")):
            assert found.measured("norm").all(axis=1).tolist() == [step < steps for step in range(len(found.steps))]
            assert np.isnan(found.column("norm")[steps:]).all()  # type: ignore[index]
            assert find_anomalies(found) == []
            assert map_run(found, "norm", 10).heat.shape == (len(found.names), len(found.steps))
            assert np.isnan(map_run(found, "norm", 10).scores[:, steps:]).all()
        assert rank.load("grad_reduced", "nans").measured("nans").all()


def test_a_csv_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "grad_reduced_0-9.csv"
    path.write_text("vpp_stage,name,step,norm\n0,a,0,1.5\n0,a,1,12")
    followed = FollowedRun(tmp_path)
    first = followed.look()
    assert (first.ranks[0].last_step, [one.kind for one in first.problems]) == (0, ["truncated"])
    with path.open("a") as file:
        file.write("34.5\n")
    later = followed.look()
    assert (later.ranks[0].load("grad_reduced").column("norm").tolist(), later.problems) == ([[1.5], [1234.5]], ())


def test_csv_files_with_line_ends_of_other_systems_open(tmp_path: Path) -> None:
    for end in ("\r", "\r\n"):
        path = tmp_path / "grad_reduced_0-9.csv"
        path.write_bytes(f"vpp_stage,name,step,norm{end}0,a,3,1.5{end}".encode())
        assert open_monitor(path).ranks[0].load("grad_reduced").column("norm").tolist() == [[1.5]]  # type: ignore[union-attr]


def test_what_no_monitor_wrote_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_monitor(tmp_path / "missing")
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UnreadableError, match="name the folder"):
        open_monitor(tmp_path)
    (tmp_path / "rank0.monitor").write_bytes(FIRST_LINE)
    with pytest.raises(UnreadableError, match="no step yet"):
        open_monitor(tmp_path)
    (tmp_path / "rank0.monitor").write_bytes(b"something else")
    with pytest.raises(UnreadableError, match="no file of a monitor"):
        open_monitor(tmp_path)


def test_a_folder_that_is_a_link_out_of_the_root_is_not_read(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for folder in (outside, root / "rank_0"):
        folder.mkdir(parents=True)
        (folder / "weight_grad_step0-9.csv").write_text(V2 + "0,3,fc.weight,reduced,0,1,0.5,1,0\n")
    (root / "rank_1").symlink_to(outside)
    run = open_monitor(root, root=str(root))
    assert ([rank.rank for rank in run.ranks], [one.kind for one in run.problems]) == ([0], ["refused"])


def test_a_run_that_grows_is_read_on_from_its_last_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "rank0.monitor"
    whole = contents()
    start = whole.index(values_frame(LAYOUT, 3, [3 / 8], struct.pack("<5f", *range(15, 20))))
    path.write_bytes(whole[: start + 11])
    followed = FollowedRun(tmp_path)
    first = followed.look()
    assert (first.ranks[0].last_step, followed.look() is first) == (2, True)
    with path.open("ab") as file:
        file.write(whole[start + 11 :])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_files, "PIECE", 50)
        later = followed.look()
    assert (later.ranks[0].last_step, later.problems) == (STEPS - 1, ())
    np.testing.assert_array_equal(
        later.ranks[0].load("grad_reduced").values, open_monitor(tmp_path).ranks[0].load("grad_reduced").values
    )
    norms = later.ranks[0].load("grad_reduced", "nans")
    assert (norms.statistics, norms.values[2].tolist()) == (("nans",), [[13], [11]])
    (tmp_path / "rank0-1.monitor").write_bytes(contents(first=4))
    assert followed.look().ranks[0].last_step == 9
    path.unlink()
    path.write_bytes(whole[:start])
    with pytest.raises(UnreadableError, match="replaced"):
        later.ranks[0].load("exp_avg")
