"""bench/goodput/run.py as a command: trainings continue after kills of workers, launchers."""

import json
import os
import subprocess
import sys

import pytest
from launches import BIN, ROOT, skip_unless_built
from torch_python import PYTHON

FOLDER = ROOT / 'bench' / 'goodput'
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / 'compare')]

from cluster import Cluster  # noqa: E402
from kill_plan import SHARES, Kill, kill_plan  # noqa: E402


@pytest.fixture(scope='module')
def quick(tmp_path_factory):
    """{launcher: [its outcomes]} of a quick run without torchrun."""
    skip_unless_built()
    written = tmp_path_factory.mktemp('goodput') / 'run.json'
    done = subprocess.run(
        [sys.executable, FOLDER / 'run.py', '--quick', '--torchrun=', '--json', written],
        env={'CPPRUN_BIN': str(BIN), 'TORCH_PYTHON': str(PYTHON), 'PATH': '/usr/bin:/bin'},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(written.read_text())


def test_every_launcher_trains(quick):
    everything = 'cpprun with everything'
    undisturbed = {'no failure', 'no failure, with everything'}
    assert set(quick) == {*undisturbed, 'cpprun', everything, f'{everything} and a spare node'}
    for outcomes in quick.values():
        ((steps, _),) = outcomes
        assert steps > 0, quick


def test_the_kills_of_the_plan_happen(quick):
    ((_, none),), ((_, kills),) = quick['no failure'], quick['cpprun']
    assert not none
    assert sum(kills.get(kind, 0) for kind in SHARES) > 0, quick


def test_kill_of_a_node_returns_whether_a_process_was_there():
    everything = Kill(0, 'node', 0, 0)
    with Cluster(1, 60, lambda _folder: ['sleep', '600'], dict(os.environ)) as cluster:
        assert cluster.inject(everything)
        assert not cluster.inject(everything)


def test_the_plan_follows_from_the_seed():
    plan = kill_plan(1, 100_000, 10, 2, 4)
    assert plan == kill_plan(1, 100_000, 10, 2, 4) != kill_plan(2, 100_000, 10, 2, 4)
    assert abs(len(plan) - 10_000) < 500
    for kind, share in SHARES.items():
        assert abs(sum(kill.kind == kind for kill in plan) / len(plan) - share) < 0.02
    assert {kill.node for kill in plan} == {0, 1}
    assert {kill.local_rank for kill in plan} == {0, 1, 2, 3}
