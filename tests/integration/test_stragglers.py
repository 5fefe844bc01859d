"""Slow ranks: named by their compute time, reported, and left out with --stragglers=exclude.

A slow rank computes longer; all ranks then meet in a barrier, so all their steps take equally long.
"""

import pathlib

import pytest

from conftest import PYTHON
from cpprunctl import output_of
from nodes import free_port, wait_for
from nodes_net import named
from run_events import events_below
from test_bad_nodes import hosts  # noqa: F401

MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'

# The barrier is a file per rank and step: no rank begins a step before all have ended the last one.
TRAIN = f"""
import os, sys, time
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker as w

rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
marks = os.path.join(os.environ['MARKS'], os.environ['CPPRUN_ROUND'])
slow = os.environ.get('SLOW', '').split(',')
os.makedirs(marks, exist_ok=True)

def compute(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(0.001)

def meet(number):
    open(f'{{marks}}/{{rank}}.{{number}}', 'w').close()
    while not all(os.path.exists(f'{{marks}}/{{r}}.{{number}}') for r in range(size)):
        if os.path.exists(os.environ['MARKS'] + '/over'):
            sys.exit(0)
        time.sleep(0.002)

number = 0
while not os.path.exists(os.environ['MARKS'] + '/over'):
    number += 1
    with w.step(number) as this:
        is_slow = str(rank) in slow or os.uname().nodename in slow
        compute(0.12 if is_slow else 0.04)
        this.compute_done()
        meet(number)
"""


DDP = f"""
import sys, time
sys.path.insert(0, {str(MODULE)!r})
import torch
import torch.distributed as dist
import cpprun_worker as w

dist.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
w.watch_ddp(model)
for number in range(6):
    model(torch.ones(32, 64)).sum().backward()
    if number == 4:
        time.sleep(1.1)  # it reads torch's data once a second
    w.heartbeat(number)
from cpprun_worker import _agent
page = w._own_agent()._int64s
assert page[_agent.COMPUTE_STEPS] >= 1 and page[_agent.COMPUTE_NS] > 0
print('reported')
"""


def test_a_slow_rank_is_named_by_its_compute_time(jobs, tmp_path):
    logs = tmp_path / 'logs'
    job = jobs.cpprun(
        *('--standalone', '--nproc-per-node=4', f'--log-dir={logs}'),
        *jobs.py(TRAIN),
        env={'SLOW': '2'},
    )
    wait_for(lambda: events_below(logs, 'slow_rank'), 'the slow rank')
    found = events_below(logs, 'slow_rank')
    shown = output_of('status', events_below(logs, 'run_started')[0]['run_id'])
    (jobs.marks / 'over').touch()
    assert job.done() == 0
    assert {event['rank'] for event in found} == {2} and found[0]['action'] == ''
    assert found[0]['compute_us'] > 1.3 * found[0]['median_us'] > 0
    assert 'slow: rank 2 on ' in shown and 'slow: rank 2 on ' in job.err


def test_ranks_that_report_no_compute_time_are_not_judged(jobs, tmp_path):
    logs = tmp_path / 'logs'
    code = TRAIN.replace('this.compute_done()', 'pass') + 'w.heartbeat(number + 1)\n'
    job = jobs.cpprun(
        *('--standalone', '--nproc-per-node=4', f'--log-dir={logs}'),
        *jobs.py(code.replace("/over')", "/over') and number < 100")),
        env={'SLOW': '2'},
    )
    assert job.done() == 0
    assert not events_below(logs, 'slow_rank') and 'slow: rank' not in job.err


def test_a_slow_host_is_excluded_and_a_spare_takes_its_place(jobs, hosts, tmp_path):  # noqa: F811
    logs, port = tmp_path / 'logs', free_port()
    options = (
        *('--nnodes=3:3', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{port}'),
        *('--rdzv-id=slow-host', f'--log-dir={logs}', '--stragglers=exclude'),
    )
    agents = []
    for node in ('n0', 'n1', 'n2', 'n3'):
        agents.append(
            jobs.cpprun(*options, *jobs.py(TRAIN), env={'SLOW': 'n1'}, wrap=named(node))
        )
        if node == 'n2':
            wait_for(lambda: len(events_below(logs, 'round_started')) == 3, 'the first round')
    wait_for(lambda: events_below(logs, 'host_excluded'), 'the exclusion')
    formed = wait_for(
        lambda: [e for e in events_below(logs, 'round_started') if e['node'] == 'n3'], 'the spare'
    )
    (jobs.marks / 'over').touch()
    for agent in agents:
        assert agent.done() == 0
    assert [event['node'] for event in events_below(logs, 'host_excluded')] == ['n1']
    assert [e['action'] for e in events_below(logs, 'slow_rank')] == ['its host is excluded']
    assert formed and {e['restart_count'] for e in events_below(logs, 'round_formed')} == {0}


def test_a_job_of_one_node_refuses_to_exclude(jobs):
    job = jobs.cpprun('--standalone', '--stragglers=exclude', *jobs.py('pass'))
    assert job.done() != 0
    assert '--stragglers=exclude needs a job of several nodes' in job.err


def test_compute_times_of_a_data_parallel_model_come_from_torch(jobs):
    pytest.importorskip('torch', reason='torch is not installed')
    path = jobs.folder / 'ddp.py'
    path.write_text(DDP)
    environment = {'PYTHON_EXEC': PYTHON}
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', path, env=environment)
    assert job.done(300) == 0
    assert job.out.count('reported') == 2
