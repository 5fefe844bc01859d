"""cpprun_worker.elastic over several nodes: two and three agents on this machine, each with two
workers. The worker is tests/support/elastic_worker.py.
"""

import re
import signal
import socket

import pytest
from conftest import free_port, is_alive, kill, poll
from cpprunctl import output_of
from elastic_jobs import beginnings
from test_elastic import PYTHON, WORKER, undisturbed
from torch_python import needs_torch

pytestmark = needs_torch

SAMPLER_WORKER = WORKER.with_name('elastic_sampler_worker.py')


class Nodes:
    """Agents of one job. The one of the first node hosts the coordinator."""

    def __init__(self, jobs, nnodes, *flags):
        self.jobs, self.nnodes, self.flags, self.port = jobs, nnodes, flags, free_port()
        self.run_id = f'elastic-{self.port}'
        self.agents = []

    def start(self, count=1, args=('sleep=0.05',), worker=WORKER):
        for _ in range(count):
            if len(self.agents) == 1:  # the others connect to it
                poll(self.is_hosted, 60, lambda: self.output)
            fixed = (f'--nnodes={self.nnodes}', '--nproc-per-node=2', '--max-restarts=3')
            own = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': PYTHON}
            self.agents.append(
                self.jobs.cpprun(
                    *(*fixed, '--rdzv-backend=c10d', f'--rdzv-id={self.run_id}', '--preload=torch'),
                    *(f'--rdzv-endpoint=127.0.0.1:{self.port}', *self.flags, worker, *args),
                    env=own,
                )
            )
        return self.agents[-1]

    def is_hosted(self):
        with socket.socket() as probe:
            return probe.connect_ex(('127.0.0.1', self.port)) == 0

    @property
    def output(self):
        return ''.join(agent.output for agent in self.agents)

    def processes(self, round, n):
        """Process ids by rank, of a round that all ranks have begun."""

        def look():
            pattern = rf'\[rank (\d+)\] call of process (\d+) in round {round}\b'
            found = re.findall(pattern, self.output)
            return {int(rank): int(pid) for rank, pid in found} if len(found) >= n else None

        return poll(look, 120, lambda: self.output)

    def at_step(self, step, round=1):
        pattern = re.compile(rf'step {step} of round {round}$', re.MULTILINE)
        poll(lambda: pattern.search(self.output), 120, lambda: self.output)

    def all_at_step(self, step):
        """All ranks have completed that step of round 1, as in elastic_jobs.all_at_step()."""
        self.at_step(step + 1)

    def scale(self, nodes):
        output_of('scale', nodes, '--job', self.run_id)

    def node_of(self, pid):
        """The index of the agent that started this process."""
        return next(i for i, a in enumerate(self.agents) if f'process {pid} ' in a.output)

    def parameters(self, n):
        for agent in self.agents:
            assert agent.done() == 0, self.output
        found = re.findall(r'parameters (\w+)', self.output)
        assert len(found) == n and len(set(found)) == 1, self.output
        return found[0]


@pytest.fixture
def nodes(jobs):
    def make(nnodes, *flags):
        return Nodes(jobs, nnodes, *flags)

    return make


def staying(before, after):
    return set(before.values()) & set(after.values())


@pytest.mark.parametrize('rank', [3, 0])
def test_survivors_of_all_nodes_stay(jobs, nodes, rank):
    expected = undisturbed(jobs)
    job = nodes(2)
    job.start(2)
    before = job.processes(1, 4)
    job.at_step(10)
    kill(before[rank])
    after = job.processes(2, 4)
    assert set(before.values()) - staying(before, after) == {before[rank]}
    assert job.parameters(4) == expected
    reports = sorted(re.findall(r'round 2 on this node: (.*)$', job.output, re.MULTILINE))
    assert reports == ['1 worker stays, 1 is replaced', '2 workers stay, none is replaced']
    assert 'restarting all' not in job.output


def test_workers_of_two_nodes_killed_at_once(jobs, nodes):
    expected = undisturbed(jobs)
    job = nodes(2)
    job.start(2)
    before = job.processes(1, 4)
    job.at_step(10)
    first = next(rank for rank, pid in before.items() if job.node_of(pid) == 0)
    second = next(rank for rank, pid in before.items() if job.node_of(pid) == 1)
    for rank in (first, second):
        kill(before[rank])
    after = job.processes(2, 4)
    assert set(before.values()) - staying(before, after) == {before[first], before[second]}
    assert job.parameters(4) == expected


def test_world_shrinks_when_a_node_is_lost(nodes):
    job = nodes('2:3', '--rdzv-conf=last_call_timeout=600')
    job.start(3)
    before = job.processes(1, 6)
    job.at_step(10)
    lost = job.agents.pop()
    gone = {pid for pid in before.values() if f'process {pid} ' in lost.output}
    lost.process.kill()
    after = job.processes(2, 4)
    assert set(after.values()) == set(before.values()) - gone
    poll(lambda: not any(is_alive(pid) for pid in gone), 20)
    lost.done()
    assert job.parameters(4)


def test_a_smaller_world_uses_each_sample_of_the_epoch_once(nodes):
    """A node is lost within an epoch, whose rest the ranks of the other node divide."""
    job = nodes('1:2', '--rdzv-conf=last_call_timeout=600')
    job.start(2, ('sleep=0.05', 'steps=100'), SAMPLER_WORKER)
    job.processes(1, 4)
    job.at_step(20)
    lost = job.agents.pop()
    lost.process.kill()
    job.processes(2, 2)
    lost.done()
    (agent,) = job.agents
    assert agent.done() == 0, job.output
    found = re.findall(r'(\d+) epochs, each sample 1 to 1 times', job.output)
    assert len(found) == 2 and int(found[0]) >= 3, job.output


def test_spare_takes_the_place_of_a_lost_node(jobs, nodes):
    expected = undisturbed(jobs)
    job = nodes(2)
    job.start(2)
    before = job.processes(1, 4)
    job.at_step(5)
    job.start()
    job.agents[2].wait_for('spare')
    lost = job.agents.pop(1)
    gone = {pid for pid in before.values() if f'process {pid} ' in lost.output}
    lost.process.kill()
    after = job.processes(2, 4)
    assert staying(before, after) == set(before.values()) - gone
    lost.done()
    assert job.parameters(4) == expected


def test_growth_keeps_the_workers(nodes):
    args = ('sleep=0.05', 'steps=400')
    job = nodes('1:2', '--rdzv-conf=last_call_timeout=1,scale_up_interval=0')
    job.start(1, args)
    before = job.processes(1, 2)
    job.at_step(5)
    job.start(1, args)
    after = job.processes(2, 4)
    assert staying(before, after) == set(before.values())
    assert job.parameters(4)
    starts = beginnings(job)
    assert sorted(starts)[:2] == [0, 0] and min(sorted(starts)[2:]) >= 5


def test_scaling_keeps_the_workers(nodes):
    """`cpprunctl scale` takes a node out of the job, and in again."""
    args = ('sleep=0.05', 'steps=400')
    job = nodes('1:2', '--rdzv-conf=last_call_timeout=600')
    job.start(2, args)
    before = job.processes(1, 4)
    job.all_at_step(5)
    job.scale(1)
    fewer = job.processes(2, 2)
    assert set(fewer.values()) < set(before.values())
    poll(lambda: not any(map(is_alive, set(before.values()) - set(fewer.values()))), 20)
    job.at_step(r'\d+', round=2)
    job.scale(2)
    again = job.processes(3, 4)
    assert staying(fewer, again) == set(fewer.values())
    assert job.parameters(4)
    starts = sorted(beginnings(job))
    assert starts[:4] == [0, 0, 0, 0] and starts[4] >= 5


@pytest.mark.parametrize('state', ['donor', 'memory'])
def test_world_shrinks_when_a_node_is_asked_to_stop(nodes, state):
    """Workers that save do so together and are restarted; others stay."""
    args = ('sleep=0.05', 'steps=200', f'state={state}')
    flags = ('--snapshot-dir=snapshots',) if state == 'memory' else ()
    job = nodes('1:2', '--rdzv-conf=last_call_timeout=600', *flags)
    job.start(2, args)
    before = job.processes(1, 4)
    job.all_at_step(5)
    drained = job.agents.pop()
    gone = {pid for pid in before.values() if f'process {pid} ' in drained.output}
    drained.send(signal.SIGTERM)
    drained.done()
    after = job.processes(2, 2)
    assert staying(before, after) == (set() if state == 'memory' else set(before.values()) - gone)
    assert job.parameters(2)
    starts = sorted(beginnings(job))
    assert starts[:2] == [0, 0] and starts[2] >= 5
