"""Jobs and servers whose system calls fail now and then, in ways that kernels allow: nothing is
lost.

The calls fail in cpprun and cpprunctl alone: tests/support/fault_points.cpp.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BIN, free_port
from nodes import Job, cluster  # noqa: F401
from run_events import events_of_run
from snapshot_folders import contents, make_snapshot

SHIM = BIN / 'fault_points.so'
STRESS = pathlib.Path(__file__).resolve().parents[1] / 'conformance' / 'store_stress.py'
LINES = 300
CHATTY = f"""
import os
for i in range({LINES}):
    print(f'rank {{os.environ["RANK"]}} line {{i}} ' + 'x' * (i % 90) + '.', flush=i % 7 == 0)
"""


@pytest.fixture(autouse=True)
def built():
    if not SHIM.exists():
        pytest.skip(f'{SHIM.name} is not built')


@pytest.fixture
def points(tmp_path):
    """Variables for a program with these faults, and a count of the faults by kind."""

    class Points:
        log = tmp_path / 'fault-points'

        def env(self, faults):
            return {
                'LD_PRELOAD': str(SHIM),
                'FAULT_POINTS': faults,
                'FAULT_POINTS_SEED': '1',
                'FAULT_POINTS_LOG': str(self.log),
            }

        def met(self):
            return collections.Counter(self.log.read_text())

    return Points()


def nodes(jobs, count, faults, *args):
    flags = (f'--nnodes={count}', '--rdzv-backend=c10d', '--nproc-per-node=2')
    place = f'--rdzv-endpoint=127.0.0.1:{free_port()}'
    return [jobs.cpprun(*flags, place, *args, env=faults) for _ in range(count)]


def test_output_is_complete_in_spite_of_partial_writes(jobs, points, tmp_path):
    logs = tmp_path / 'logs'
    job = jobs.cpprun(
        *('--standalone', '--nproc-per-node=2', '--tee=3', f'--log-dir={logs}'),
        jobs.py(CHATTY),
        env=points.env('short:0.9,eintr:0.3'),
    )
    assert job.done(60) == 0, job.err
    for rank in range(2):
        lines = [f'rank {rank} line {i} ' + 'x' * (i % 90) + '.' for i in range(LINES)]
        (file,) = logs.glob(f'*/attempt_0/{rank}/stdout.log')
        assert file.read_text().splitlines() == lines
        shown = [line for line in job.out.splitlines() if f'rank {rank} ' in line]
        assert shown == [f'[default{rank}]:{line}' for line in lines]
    names = [event['event'] for event in events_of_run(logs)]
    assert names[0] == 'run_started' and names[-1] == 'finished'
    assert points.met()['s'] > 30 and points.met()['e'] > 3, points.met()


def test_nodes_meet_in_spite_of_interrupted_calls(jobs, points):
    env = points.env('accept:0.9,short:0.5,eintr:0.3')
    agents = nodes(jobs, 3, env, jobs.py(CHATTY))
    for agent in agents:
        assert agent.done(60) == 0, agent.err
    assert min(points.met()[kind] for kind in 'ase') > 0, points.met()


def test_nodes_meet_in_spite_of_descriptor_shortages(jobs, points):
    agents = nodes(jobs, 3, points.env('emfile:0.9'), jobs.py(CHATTY))
    for agent in agents:
        assert agent.done(90) == 0, agent.err
    assert points.met()['e'] > 0
    output = ''.join(agent.err for agent in agents)
    assert output.count('out of file descriptors') == 1


def test_full_disk_costs_only_log_files(jobs, points, tmp_path):
    job = jobs.cpprun(
        *('--standalone', '--nproc-per-node=2', '--tee=3', f'--log-dir={tmp_path}/logs'),
        jobs.py(CHATTY),
        env=points.env('full:1'),
    )
    assert job.done(60) == 0, job.err
    assert len([line for line in job.out.splitlines() if line.endswith('.')]) == 2 * LINES
    assert 'No space left on device' in job.err
    assert job.err.count('events.jsonl') == 1, 'one warning'


def test_snapshot_is_complete_in_spite_of_a_slow_disk(cluster, points, tmp_path):  # noqa: F811
    files = {'model.pt': os.urandom(3_000_000), 'optim.pt': os.urandom(1000), 'rank-0.pt': b''}
    made = make_snapshot(tmp_path / 'has', 20, files)
    env = points.env('short:0.3,eintr:0.2,fsync:1')
    job = Job(cluster, 2)
    agents = [job.host(0, f'--snapshot-dir={tmp_path}/has', **env)]
    agents += [job.agent(1, f'--snapshot-dir={tmp_path}/lacks', **env)]
    cluster.world(0, 1)
    assert contents(tmp_path / 'lacks' / 'step-20') == contents(made)
    assert points.met()['f'] >= len(files)
    cluster.finish(*agents)


def test_store_stays_correct_with_failing_calls(points):
    """As in tests/conformance/test_store_kills.py, for a shorter time."""
    pytest.importorskip('torch.distributed')
    server = subprocess.Popen(
        [BIN / 'cpprunctl', 'serve', '--listen', '127.0.0.1:0'],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **points.env('accept:0.3,short:0.3,eintr:0.3')},
    )
    try:
        port = server.stderr.readline().rsplit(':', 1)[1].strip()
        command = [sys.executable, STRESS, port, '1', '4']
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=100,
            env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1',
                 'TORCH_CPP_LOG_LEVEL': 'ERROR'},
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert not report['wrong'] and report['leaks'] == [0, 0], f'{report}\n{done.stderr}'
    finally:
        server.kill()
        server.wait()
    assert min(points.met()[kind] for kind in 'ase') > 20, points.met()
