"""cpprun_worker.Snapshot on two nodes: two agents on this machine, each with its own folder."""

import re
import shutil

import pytest
from conftest import free_port, poll
from test_python_snapshot import WORKER
from test_python_snapshot import pytestmark as pytestmark  # skips without torch
from torch_python import training_env

STEPS = 60


class TwoNodes:
    def __init__(self, jobs, *flags):
        self.jobs, self.flags, self.port = jobs, flags, free_port()

    def start(self, name):
        folder = self.jobs.folder / name
        folder.mkdir()
        return self.jobs.cpprun(
            *('--nnodes=2', '--nproc-per-node=1', '--rdzv-backend=c10d', '--rdzv-id=snapshots'),
            *(f'--rdzv-endpoint=127.0.0.1:{self.port}', f'--snapshot-dir={folder}/runs'),
            *(*self.flags, WORKER),
            *(f'steps={STEPS}', 'every=10', 'sleep=0.1', 'flags=lacks-own'),
            env=training_env(LOGLEVEL='DEBUG'),
        )

    def lose(self, name, running):
        running.process.kill()
        running.done()
        shutil.rmtree(self.jobs.folder / name)


def undisturbed(jobs):
    words = ('--standalone', '--nproc-per-node=2', WORKER)
    words += (f'steps={STEPS}', 'every=1000', 'folder=undisturbed')
    job = jobs.cpprun(*words, env=training_env())
    assert job.done() == 0, job.output
    return job.find(r'\] parameters (\w+)')[1]


@pytest.mark.parametrize('flags', [('--snapshot-replicas=1',), ()], ids=['replicas', 'disk'])
def test_a_new_node_resumes(jobs, flags):
    """Exactly, from memory that its neighbour has copied; else from what the neighbour has on disk,
    where the random generators of the lost rank are missing."""
    expected = undisturbed(jobs) if flags else None
    nodes = TwoNodes(jobs, *flags)
    first = nodes.start('first')
    first.wait_for('waiting: 1 of')
    lost = nodes.start('lost')
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
    resumed = re.findall(r'\] from (\d+) (\w+)', first.output + new.output)
    assert [where for _, where in resumed] == ['none', *['memory' if flags else 'disk'] * 2]
    assert resumed[1] == resumed[2] and int(resumed[1][0]) >= step
    if expected:
        assert first.find(rf'\] parameters {expected}'), first.output
