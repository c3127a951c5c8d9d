"""The real msprobe's TrainerMon and our monitor watch the same training: the same columns, equal to 1e-6.

DUMPSCOPE_PEER_PYTHON names an interpreter that has msprobe 26.2.0; `make test` makes one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from warm_python import warm_python

from dumpscope.domain.monitor.tables import MonitorRun
from dumpscope.readers.monitors.opening import open_monitor

PEER = os.environ.get("DUMPSCOPE_PEER_PYTHON", "")
pytestmark = pytest.mark.skipif(not PEER, reason="no interpreter with msprobe was named")

TESTS = Path(__file__).resolve().parents[1]
ROUNDED = 1e-20
"""msprobe's csv has at most 20 digits behind the point."""
METRICS = (
    "grad_unreduced",
    "grad_reduced",
    "exp_avg",
    "exp_avg_sq",
    "param_origin",
    "param_updated",
    "actv",
    "actv_grad",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[MonitorRun, MonitorRun]:
    """The same training, watched by us and by msprobe."""
    folder = tmp_path_factory.mktemp("monitors")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "capture")])}
    commands = {"dumpscope": warm_python(), "msprobe": PEER}
    for engine, command in commands.items():
        subprocess.run(
            [command, "-m", "capture.monitored_peer", engine, str(folder / "config.json"), str(folder / engine)],
            cwd=TESTS, env=environment, check=True, timeout=250, capture_output=True,
        )  # fmt: skip
    return open_monitor(folder / "dumpscope"), open_monitor(folder / "msprobe")


@pytest.mark.parametrize("metric", METRICS)
def test_every_column_of_msprobe_is_ours_to_a_millionth(runs: tuple[MonitorRun, MonitorRun], metric: str) -> None:
    ours, theirs = (run.ranks[0].load(metric) for run in runs)
    assert [run.tool for run in runs] == ["dumpscope", "msprobe"]
    assert ours.steps.tolist() == theirs.steps.tolist()
    places = [ours.names.index(name) for name in theirs.names if name in ours.names]
    names = [ours.names[place] for place in places]
    left_out = set(theirs.names) - set(names)
    assert {name.rpartition(".")[2] for name in left_out} <= ({"input"} if metric == "actv_grad" else set())
    scale = theirs.column("max")[:, [theirs.names.index(name) for name in names]]
    scale = np.maximum(np.abs(scale), 1e-30)
    for statistic in theirs.statistics:
        mine = ours.column(statistic)[:, places]
        other = theirs.column(statistic)[:, [theirs.names.index(name) for name in names]]
        if statistic == "mean":  # of numbers that nearly cancel: to a millionth of the largest
            mine, other = mine / scale, other / scale
        np.testing.assert_allclose(
            mine, other, rtol=1e-6, atol=1e-6 if statistic == "mean" else ROUNDED, err_msg=statistic
        )
