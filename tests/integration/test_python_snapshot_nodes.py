"""cpprun_worker.Snapshot on two nodes: two agents on this machine, each with its own folder, or
with one that both see."""

import re
import shutil

import pytest
from conftest import free_port, kill, poll
from test_python_snapshot import WORKER
from test_python_snapshot_sharded import WORKER as SHARDED_WORKER
from torch_python import needs_torch, training_env

pytestmark = needs_torch

STEPS = 60
TRAINING = (WORKER, f'steps={STEPS}', 'every=10', 'sleep=0.1')


class TwoNodes:
    def __init__(self, jobs, *flags, n=1, shared=None, program=TRAINING, **env):
        """`shared`: the folder of both nodes; None: each has its own, which is lost with it."""
        self.jobs, self.flags, self.port = jobs, flags, free_port()
        self.n, self.shared, self.program, self.env = n, shared, program, env

    def start(self, name):
        folder = self.jobs.folder / name
        folder.mkdir()
        return self.jobs.cpprun(
            *('--nnodes=2', f'--nproc-per-node={self.n}', '--rdzv-backend=c10d'),
            *('--rdzv-id=snapshots', f'--rdzv-endpoint=127.0.0.1:{self.port}'),
            *(f'--snapshot-dir={self.shared or folder / "runs"}', *self.flags, *self.program),
            env=training_env(LOGLEVEL='DEBUG', **self.env),
        )

    def start_both(self, second):
        first = self.start('first')
        first.wait_for('waiting: 1 of')
        return first, self.start(second)

    def lose(self, name, running):
        running.process.kill()
        running.done()
        shutil.rmtree(self.jobs.folder / name)


def undisturbed(jobs, n=2):
    args = ('--standalone', f'--nproc-per-node={n}', WORKER)
    args += (f'steps={STEPS}', 'every=1000', 'folder=undisturbed')
    job = jobs.cpprun(*args, env=training_env())
    assert job.done() == 0, job.output
    return job.find(r'\] parameters (\w+)')[1]


@pytest.mark.parametrize('flags', [('--snapshot-replicas=1',), ()], ids=['replicas', 'disk'])
def test_a_new_node_resumes(jobs, flags):
    """Exactly, from memory that its neighbour has copied; else from what the neighbour has on disk,
    where the random generators of the lost rank are missing."""
    expected = undisturbed(jobs) if flags else None
    nodes = TwoNodes(jobs, *flags, program=(*TRAINING, 'flags=lacks-own'))
    first, lost = nodes.start_both('lost')
    if flags:
        step = int(first.wait_for(r'at step (\d\d) is copied', 120)[1])
        first.wait_for(rf'step {step + 4}$', 120)
    else:
        kept = jobs.folder / 'first' / 'runs'
        found = poll(lambda: [*kept.glob('step-*')], 120, lambda: first.output)
        step = int(found[0].name.split('-')[1])
    nodes.lose('lost', lost)
    new = nodes.start('new')
    assert first.done(150) == 0, first.output
    assert new.done(30) == 0, new.output
    _, *sources = resumed(first, new)
    assert sources == [sources[0]] * 2
    assert sources[0].endswith('memory' if flags else 'disk')
    assert int(sources[0].split()[0]) >= step
    if expected:
        assert first.find(rf'\] parameters {expected}'), first.output


def resumed(*jobs):
    """"STEP SOURCE" of each rank in each round, job by job."""
    return re.findall(r'\] from (\d+ \w+)', ''.join(job.output for job in jobs))


def test_nodes_that_share_a_folder_resume_from_their_own_memory(jobs):
    """Also if the snapshots on disk are gone."""
    expected = undisturbed(jobs, n=4)
    folder = jobs.folder / 'runs'
    nodes = TwoNodes(jobs, '--max-restarts=2', n=2, shared=folder)
    first, second = nodes.start_both('second')
    first.wait_for('step 24$', 120)
    poll(lambda: (folder / 'step-20').exists(), 120, lambda: first.output)
    folder.rename(jobs.folder / 'gone')
    kill(second.worker(3))
    assert (first.done(150), second.done(30)) == (0, 0), first.output + second.output
    sources = sorted(resumed(first, second))
    assert sources[:4] == ['0 none'] * 4 and sources[4:] == [sources[-1]] * 4, sources
    assert sources[-1] in ('20 memory', '30 memory')
    assert first.find(rf'\] parameters {expected}'), first.output


def test_a_new_node_resumes_from_copies_of_the_memory_beside_a_shared_folder(jobs):
    expected = undisturbed(jobs, n=4)
    nodes = TwoNodes(jobs, '--snapshot-replicas=1', n=2, shared=jobs.folder / 'runs')
    first, lost = nodes.start_both('lost')
    step = int(first.wait_for(r'at step (\d\d) is copied', 120)[1])
    first.wait_for(rf'step {step + 4}$', 120)
    nodes.lose('lost', lost)
    new = nodes.start('new')
    assert (first.done(150), new.done(30)) == (0, 0), first.output + new.output
    sources = resumed(first, new)
    assert len(sources) == 6 and sources[2:] == [sources[-1]] * 4, sources
    assert sources[-1].endswith('memory'), first.output + new.output
    assert int(sources[-1].split()[0]) >= step
    assert first.find(rf'\] parameters {expected}'), first.output


@pytest.mark.parametrize(
    ('meshes', 'source'),
    [
        ('flat', 'memory'),  # each node has its shards only
        ('nodes', 'memory'),  # each node has all shards, and one of them writes them to disk
        ('nodes,flat', 'memory'),
        ('flat,nodes', 'disk'),  # a node would need shards of the other one
    ],
)
def test_sharded_state_over_two_nodes(jobs, meshes, source):
    folder = jobs.folder / 'runs'
    program = (SHARDED_WORKER, 30, folder, 'apart')
    flags = ('--standalone', '--nproc-per-node=4', SHARDED_WORKER, 30, 'whole', 'apart')
    whole = jobs.cpprun(*flags, env=training_env())
    assert whole.done() == 0, whole.output
    faults = 'kill:rank=3,step=13,attempt=0'
    options = {'n': 2, 'shared': folder, 'program': program, 'CPPRUN_FAULTS': faults, 'WAITS': '1'}
    nodes = TwoNodes(jobs, '--max-restarts=1', **options, MESHES=meshes)
    first, second = nodes.start_both('second')
    assert (first.done(150), second.done(30)) == (0, 0), first.output + second.output
    assert sorted(resumed(first, second)) == ['0 none'] * 4 + [f'10 {source}'] * 4
    sums = whole.find(r'\] sum (\S+)')[1], first.find(r'\] sum (\S+)')[1]
    if meshes == 'flat':  # the others add gradients in another order
        assert first.find(r'\] parameters (\w+)')[1] in whole.output
    assert float(sums[0]) == pytest.approx(float(sums[1]), rel=1e-3)
