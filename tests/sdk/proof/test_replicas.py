"""A node that is lost with its disk, and its replacement: with --snapshot-replicas=1 it resumes
exactly from the memory that a neighbour has copied; without it from disk. A worker that is lost
resumes from memory of its node, also where the nodes share a folder or a file."""

import re
import shutil

import pytest
from launches import BIN, Launches, free_port, poll

STEPS, EVERY, STEP_MS = 800, 100, 10


@pytest.fixture
def job(tmp_path):
    if not (BIN / 'sdk_proof_training').exists():
        pytest.skip('sdk_proof_training is not built')
    launches = Launches(tmp_path)
    yield launches
    launches.close()


def training(step_ms, path='snapshots'):
    program = BIN / 'sdk_proof_training'
    return ('--no-python', program, 'sgd', path, STEPS, EVERY, step_ms)


class TwoNodes:
    """Agents of one job on this machine, each with its own folder. `path`: of the snapshots."""

    def __init__(self, job, *flags, n=1, path='snapshots', **env):
        self.job, self.flags, self.port = job, flags, free_port()
        self.n, self.path, self.env = n, path, env

    def folder(self, name):
        return self.job.folder / name

    def start(self, name):
        folder = self.folder(name)
        folder.mkdir()
        return self.job.start(
            *('cpprun', '--nnodes=2', f'--nproc_per_node={self.n}', '--rdzv_backend=c10d'),
            *(f'--rdzv_endpoint=127.0.0.1:{self.port}', '--rdzv_id=replicas'),
            *(f'--snapshot-dir={folder}/snapshots', *self.flags),
            *training(STEP_MS, self.path),
            folder=folder,
            env={'OMP_NUM_THREADS': '1', 'LOGLEVEL': 'DEBUG', **self.env},
        )

    def start_both(self, second):
        first = self.start('first')
        first.wait_for('waiting: 1 of')
        return first, self.start(second)

    def lose(self, name, running):
        running.process.kill()
        running.done()
        shutil.rmtree(self.folder(name))

    def has_saved(self, name, step):
        return (self.folder(name) / 'snapshots' / f'step-{step}' / 'manifest.json').exists()


def undisturbed(job, n=2):
    folder = job.folder / 'undisturbed'
    folder.mkdir()
    words = ('cpprun', '--standalone', f'--nproc_per_node={n}', *training(0))
    running = job.start(*words, folder=folder, env={'OMP_NUM_THREADS': '1'})
    assert running.done(150) == 0, running.output
    return running.find(r'hash=(\w+)')[1]


def test_new_node_resumes_from_its_neighbours_memory(job):
    expected = undisturbed(job)
    nodes = TwoNodes(job, '--snapshot-replicas=1')
    first, lost = nodes.start_both('lost')
    step = int(first.wait_for(r'at step (\d\d\d) is copied', 120)[1])
    nodes.lose('lost', lost)
    new = nodes.start('new')
    assert first.done(150) == 0, first.output
    assert new.done(30) == 0, new.output
    came = new.find(r"this node's memory of step (\d+) came from 127.0.0.1")
    assert came and int(came[1]) >= step, new.output
    resumed = re.findall(r'resumed from (\w+) at step (\d+)', first.output)
    assert resumed == [('none', '0'), ('memory', came[1])], first.output
    assert first.find(f'hash={expected}'), first.output


def test_without_replicas_it_resumes_from_disk(job):
    nodes = TwoNodes(job)
    first, lost = nodes.start_both('lost')
    poll(lambda: nodes.has_saved('first', EVERY), 120, lambda: f'a snapshot:\n{first.output}')
    nodes.lose('lost', lost)
    new = nodes.start('new')
    assert first.done(150) == 0, first.output
    assert new.done(30) == 0, new.output
    resumed = re.findall(r'resumed from (\w+) at step (\d+)', first.output)
    assert [where for where, _ in resumed] == ['none', 'disk'], first.output
    assert 'is copied' not in first.output + new.output


@pytest.mark.parametrize('name', ['shared', 'shared.pt'])
def test_nodes_with_one_folder_or_file_resume_from_their_own_memory(job, name):
    expected = undisturbed(job, n=4)
    faults = f'kill:rank=3,step={3 * EVERY + 50},attempt=0'
    path = job.folder / name
    nodes = TwoNodes(job, '--max-restarts=1', n=2, path=path, CPPRUN_FAULTS=faults)
    first, second = nodes.start_both('second')
    assert first.done(150) == 0, first.output
    assert second.done(30) == 0, second.output
    resumed = re.findall(r'resumed from (\w+) at step (\d+)', first.output)
    assert [where for where, _ in resumed] == ['none', 'memory'], first.output
    assert int(resumed[1][1]) >= EVERY
    assert first.find(f'hash={expected}'), first.output
