"""cpprun_worker.Snapshot with real trainings: what is resumed, from where, and exactly.

A training that is killed ends with the parameters of one that is not. The worker is
tests/support/python_snapshot_worker.py. With CPPRUN_ALL there are more kills.
"""

import itertools
import json
import os
import random
import re
import shutil
import subprocess
import time

import pytest
from conftest import has_own_mounts, kill, poll
from cpprunctl import ctl
from launches import ROOT, has_no_traces
from long_tests import RUN_LONG, long
from shared_results import shared
from torch_python import PYTHON, needs_torch, training_env

WORKER = ROOT / 'tests' / 'support' / 'python_snapshot_worker.py'
WORLDS = [2, 4] if RUN_LONG else [4]
KILLS = 50 if RUN_LONG else 1  # at least so many by each test of random kills, 200 in all

pytestmark = needs_torch


def train(jobs, n, *args, flags=(), env=None):
    command = ('--standalone', f'--nproc-per-node={n}', *flags, WORKER, *args)
    return jobs.cpprun(*command, env=training_env(**(env or {})))


def result(job, n=1):
    """Hashes of the parameters, the same on all ranks, and of the state of rank 0."""
    assert job.done() == 0, job.output
    found = job.wait_for_all(r'\] parameters (\w+)', n)
    assert len(set(found)) == 1
    return found[0], job.find(r'\] state (\w+)')[1]


def alone(jobs, *args, env=None):
    command = (PYTHON, '-u', WORKER, *args)
    return jobs.start(*command, env={'OMP_NUM_THREADS': '1', **(env or {})})


def undisturbed(jobs, n):
    """The result of 30 steps without a failure. Saves don't change it."""
    train_it = lambda: result(train(jobs, n, 'folder=undisturbed', 'every=1000'), n)
    return tuple(shared(jobs.folder, ('python_snapshot', n), train_it))


def from_lines(job):
    """(step, source) of each start of each rank."""
    return [(int(step), where) for step, where in job.wait_for_all(r'\] from (\d+) (\w+)', 1)]


def test_alone_it_resumes_exactly_and_others_read_the_files(jobs):
    whole = result(alone(jobs, 'folder=whole', 'steps=30'))
    assert result(alone(jobs, 'folder=runs', 'steps=15', 'flags=waits')) != whole
    job = alone(jobs, 'folder=runs', 'steps=30', 'flags=waits')
    assert (result(job), from_lines(job)) == (whole, [(15, 'disk')])
    folder = jobs.folder / 'runs'
    assert sorted(path.name for path in folder.iterdir()) == ['step-20', 'step-25', 'step-30']
    verified = ctl('snapshot', 'verify', folder)
    assert verified.returncode == 0 and 'step-30' in verified.stdout, verified
    listed = ctl('snapshot', 'ls', folder / 'step-30' / 'model.pt').stdout
    assert ['second.weight', 'float32', '[120,', '300]'] in map(str.split, listed.splitlines())
    look = """
import sys, torch
folder = sys.argv[1]
load = lambda name: torch.load(f'{folder}/{name}', weights_only=True)
model, others, own = load('model.pt'), load('optim.pt'), load('rank-0.pt')
assert model['last.weight'].data_ptr() == model['tied.weight'].data_ptr()
assert others['STEP'] == 30 and others['epoch'] == 3 and own['mine'].tolist() == [0, 30]
assert set(own['rng']) == {'cpu', 'python', 'numpy'}
assert others['optimizer']['state'][0]['step'] == 30 and 'last_epoch' in others['scheduler']
"""
    jobs.run(PYTHON, '-c', look, folder / 'step-30')
    assert jobs.started[-1].done() == 0, jobs.started[-1].output
    manifest = json.loads((folder / 'step-30' / 'manifest.json').read_text())
    assert (manifest['step'], manifest['epoch'], manifest['world_size']) == (30, 3, 1)


@pytest.mark.parametrize('n', WORLDS)
def test_killed_workers_resume_from_memory_exactly(jobs, n):
    faults = 'kill:rank=1,step=12,attempt=0;kill:rank=0,step=23,attempt=1'
    flags = ('--max-restarts=2', '--snapshot-dir=runs')
    job = train(jobs, n, 'sleep=0.05', flags=flags, env={'CPPRUN_FAULTS': faults})
    assert result(job, n) == undisturbed(jobs, n)
    starts = from_lines(job)
    assert starts[:n] == [(0, 'none')] * n
    # A save is left out while the one before is still being written, so the step may be an earlier.
    assert {where for _, where in starts[n:]} == {'memory'}
    assert len(set(starts[n : 2 * n])) == len(set(starts[2 * n :])) == 1
    assert starts[-1][0] > starts[n][0]


def test_all_workers_killed_at_once_resume_from_memory(jobs):
    job = train(jobs, 2, 'sleep=0.05', flags=('--max-restarts=1', '--snapshot-dir=runs'))
    job.wait_for(r'step 13$')
    for rank in range(2):
        kill(job.worker(rank))
    assert result(job, 2) == undisturbed(jobs, 2)
    assert {where for _, where in from_lines(job)[2:]} == {'memory'}


def test_a_new_job_resumes_from_disk_also_with_torchrun(jobs):
    first = train(jobs, 2, 'steps=15', 'flags=waits', 'folder=runs')
    result(first, 2)
    torchrun = (PYTHON, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=2')
    job = jobs.start(*torchrun, WORKER, 'folder=runs', env={'OMP_NUM_THREADS': '1'})
    assert result(job, 2) == undisturbed(jobs, 2)
    assert from_lines(job) == [(15, 'disk')] * 2


@long
def test_without_memory_killed_workers_resume_from_disk(jobs):
    flags = ('--max-restarts=1', '--snapshot-dir=runs')
    env = {'CPPRUN_FAULTS': 'kill:rank=1,step=14,attempt=0'}
    job = train(jobs, 2, 'sleep=0.1', 'flags=no-memory', flags=flags, env=env)
    assert result(job, 2) == undisturbed(jobs, 2)
    assert {where for _, where in from_lines(job)[2:]} == {'disk'}


def is_forked(seed):
    """Whether the workers of this job are forked from a preload process. None: as everywhere."""
    return seed % 4 != 0 if RUN_LONG else None


class RandomKills:
    """Kills workers at random moments, every other time while a snapshot is being written."""

    def __init__(self, job, folder, n, seed):
        self.job, self.folder, self.n = job, folder, n
        self.random = random.Random(seed)
        self.count = 0

    def is_saving(self):
        return any(path.suffix == '.tmp' for path in self.folder.glob('.step-*'))

    def run(self, most):
        """Until the job has ended, at most so many."""
        for number in itertools.count():
            rank = self.random.randrange(self.n)
            until = time.monotonic() + self.random.uniform(0, 0.5)
            lines = len(self.job.out.splitlines())
            poll(lambda: self.has_ended() or len(self.job.out.splitlines()) > lines + self.n)
            while time.monotonic() < until and not self.has_ended():
                if number % 2 and self.is_saving():
                    break
            # The lines may be those of other ranks.
            poll(lambda rank=rank: self.has_ended() or self.has_started(rank))
            if self.has_ended() or number == most:
                return
            kill(self.job.worker(rank))
            self.count += 1

    def has_started(self, rank):
        return f'[rank {rank}] started as process ' in self.job.output

    def has_ended(self):
        return self.job.process.poll() is not None


@pytest.mark.timeout(7200 if RUN_LONG else 600)
@pytest.mark.parametrize('n', WORLDS)
def test_random_kills_do_not_change_the_result(jobs, n):
    expected, count = undisturbed(jobs, n), 0
    for seed in range(KILLS):
        if count >= KILLS:
            break
        runs = f'runs-{seed}'
        flags = ('--max-restarts=50', f'--snapshot-dir={runs}')
        args = ('every=2', 'sleep=0.03', f'keep={1 + seed % 3}')
        job = train(jobs, n, *args, flags=flags, env={'are_forked': is_forked(seed)})
        kills = RandomKills(job, jobs.folder / runs, n, seed)
        kills.run(4)
        count += kills.count
        assert result(job, n) == expected, job.output
        assert ctl('snapshot', 'verify', jobs.folder / runs).returncode == 0
    print(f'{count} kills, {n} ranks of DistributedDataParallel')
    assert count >= KILLS


def test_a_rank_that_fails_in_a_save_notifies_the_others(jobs):
    """Whatever it fails with: the others would wait for it."""
    env = {'CPPRUN_FAULTS': 'throw:rank=0,step=5,phase=saving'}
    job = train(jobs, 2, 'sleep=0.1', 'every=5', flags=('--snapshot-dir=runs',), env=env)
    assert result(job, 2) == undisturbed(jobs, 2)
    assert 'the snapshot of step 5 was not written: rank 0: fault throw' in job.output
    assert job.find('snapshots are written again, from step 1')
    assert not list((jobs.folder / 'runs').glob('.*'))


def test_a_damaged_snapshot_is_skipped_and_named(jobs):
    result(alone(jobs, 'steps=15', 'flags=waits', 'folder=runs'))
    path = jobs.folder / 'runs' / 'step-15' / 'model.pt'
    content = bytearray(path.read_bytes())
    content[9000] ^= 1
    path.write_bytes(content)
    job = alone(jobs, 'folder=runs')
    assert result(job) == undisturbed(jobs, 1)
    assert from_lines(job) == [(10, 'disk')]
    assert "step-15 can't be used (" in job.output
    assert 'model.pt is not what was written' in job.output
    assert '; fell back one to step-10' in job.output


def test_a_model_of_another_shape_is_refused_with_its_tensor(jobs):
    result(alone(jobs, 'steps=5', 'folder=runs'))
    job = alone(jobs, 'width=310', 'folder=runs')
    assert job.done() == 1
    assert "runs/step-5 does not fit the program: 'model': " in job.output
    assert 'size mismatch for second.weight' in job.output


def test_another_world_size_continues_with_derived_generators(jobs):
    result(train(jobs, 2, 'steps=15', 'flags=waits', 'folder=runs'), 2)
    ends = []
    for folder in ('runs', 'again'):
        job = train(jobs, 3, 'steps=20', f'folder={folder}', 'every=50', 'flags=lacks-own')
        shutil.copytree(jobs.folder / 'runs', jobs.folder / 'again', dirs_exist_ok=True)
        ends.append(result(job, 3))
        assert from_lines(job) == [(15, 'disk')] * 3
        assert "cpprun: step-15 has nothing of rank 2's own: its random generators" in job.output
    assert ends[0] == ends[1]


def test_no_snapshot_with_a_nan_is_saved_if_they_are_refused(jobs):
    job = alone(jobs, 'steps=20', 'nan=8', 'sleep=0.1', 'flags=refuse-nan', 'folder=runs')
    assert job.done() == 0
    assert [path.name for path in (jobs.folder / 'runs').iterdir()] == ['step-5']
    text = r"the snapshot of step \d+ is left out: 'model.second.weight' has a NaN or an infinity"
    assert len(re.findall(text, job.output)) == job.output.count('has a NaN') == 1


def test_a_folder_that_cannot_be_written_is_reported_once_and_training_continues(jobs):
    (jobs.folder / 'file').write_text('')
    job = alone(jobs, 'folder=file/runs', 'sleep=0.1')
    assert result(job) == undisturbed(jobs, 1)
    assert job.output.count('was not written: ') == 1
    assert has_no_traces(job.output)
    assert 'saved False' in job.output


def test_what_is_marked_as_bad_is_not_resumed_from_memory_either(jobs):
    flags = ('--max-restarts=1', '--snapshot-dir=runs')
    job = train(jobs, 2, 'every=10', 'sleep=0.2', 'flags=waits', 'steps=35', flags=flags)
    folder = jobs.folder / 'runs'
    poll(lambda: (folder / 'step-20').exists(), 60, lambda: job.output)
    marked = ctl('snapshot', 'mark-bad', folder / 'step-20')
    assert marked.returncode == 0 and 'set aside as' in marked.stdout, marked
    kill(job.worker(1))
    result(job, 2)
    # The other slot of the memory may still have step 10.
    assert [step for step, _ in from_lines(job)[2:]] == [10, 10]
    assert ctl('snapshot', 'mark-bad', jobs.folder).returncode == 1


@pytest.mark.skipif(not has_own_mounts(), reason='mounting a small disk needs root')
def test_a_full_disk_keeps_the_snapshots_of_before(jobs):
    """One that has room for two snapshots, and not for three."""
    (jobs.folder / 'runs').mkdir()
    copy = 'mount -t tmpfs -o size=1300k none runs && "$@"; code=$?; cp -r runs kept; exit $code'
    args = (PYTHON, '-u', WORKER, 'folder=runs', 'sleep=0.1', 'flags=no-memory')
    command = ('unshare', '-m', 'sh', '-c', copy, 'sh', *args)
    job = jobs.start(*command, env={'OMP_NUM_THREADS': '1'})
    assert result(job) == undisturbed(jobs, 1)
    hint = 'No space left on device; free some there, keep fewer snapshots, or name another folder'
    assert job.output.count('was not written: ') == job.output.count(hint) == 1
    assert len(list((jobs.folder / 'kept').glob('step-*'))) == 2
    assert not list((jobs.folder / 'kept').glob('.*'))
    assert ctl('snapshot', 'verify', jobs.folder / 'kept').returncode == 0


def test_two_programs_in_one_folder_leave_whole_snapshots(jobs):
    """Each counts the other's newer ones as a future that was left; none is mixed or cut."""
    both = [alone(jobs, 'folder=runs', 'every=2', 'sleep=0.05', 'keep=2') for _ in range(2)]
    for job in both:
        assert result(job) == undisturbed(jobs, 1)
    folder = jobs.folder / 'runs'
    assert ctl('snapshot', 'verify', folder).returncode == 0
    assert not list(folder.glob('.*'))
    last = alone(jobs, 'folder=runs', 'steps=31')
    assert last.done() == 0, last.output
    assert from_lines(last)[0][1] == 'disk'


def test_a_message_names_some_of_many_unfinished_snapshots(jobs):
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker
snapshot = cpprun_worker.Snapshot('runs', extra={{'one': 1}}, in_memory=False)
assert snapshot.save(1) and snapshot.save(2)
with open('runs/step-2/optim.pt', 'r+b') as file:
    file.write(b'x')
for step in range(3, 1003):
    os.mkdir(f'runs/step-{{step}}')
print(snapshot.resume())
"""
    code, output = jobs.run(PYTHON, '-c', code)
    assert (code, output.splitlines()[-1:]) == (0, ['1']), output
    assert output.startswith("cpprun: step-2 can't be used (")
    assert "; step-1002 can't be used (it has no manifest.json); step-1001" in output
    assert '; nor can 993 others; fell back 1001 to step-1\n' in output
    assert len(output) < 1000


def test_checkpoints_of_other_programs_stay(jobs):
    """torchtitan's are called step-<n> as well."""
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker
for step in 1, 3, 5:
    os.makedirs(f'runs/step-{{step}}')
    open(f'runs/step-{{step}}/.metadata', 'w').close()
snapshot = cpprun_worker.Snapshot('runs', extra={{'one': 1}}, in_memory=False, keep=1)
print([snapshot.save(step) for step in (2, 3, 4)], snapshot.resume())
"""
    code, output = jobs.run(PYTHON, '-c', code)
    assert (code, output.splitlines()[-1:]) == (0, ['[True, False, True] 4']), output
    reason = 'it has no manifest.json; it is a checkpoint of torch.distributed.checkpoint'
    assert f"step-5 can't be used ({reason})" in output
    assert 'step-3 is there and has no manifest.json, so it is no snapshot of cpprun' in output
    assert sorted(os.listdir(jobs.folder / 'runs')) == ['step-1', 'step-3', 'step-4', 'step-5']
    assert os.listdir(jobs.folder / 'runs/step-3') == ['.metadata']


def test_what_is_no_manifest_is_skipped(jobs):
    """A FIFO without a writer would hold open()."""
    makers = os.mkfifo, os.mkdir, lambda path: os.symlink('/dev/zero', path)
    for step, make in enumerate(makers, 7):
        (jobs.folder / f'runs/step-{step}').mkdir(parents=True)
        make(jobs.folder / f'runs/step-{step}/manifest.json')
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker
print(cpprun_worker.Snapshot('runs', extra={{'one': 1}}).resume())
"""
    code, output = jobs.run(PYTHON, '-c', code)
    assert (code, output.splitlines()[-1:]) == (0, ['0']), output
    assert output.count("can't be used") == 3, output


def test_two_snapshots_of_a_program_do_not_share_a_folder(jobs):
    """The second would replace the first one's snapshots, and both would resume from its state. One
    that takes the place of another, as after an in-process restart, may have its folder."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
make = lambda folder: cpprun_worker.Snapshot(folder, model=torch.nn.Linear(1, 1))
first, second, other = make('runs'), make('runs'), make('other')
print(first.save(1), other.save(1), first.save(2), second.save(2), other.save(2), second.save(3))
for save in (first.save, first.save_async, lambda step: first.maybe_save(step, every=1)):
    try:
        print(save(4))
    except ValueError as error:
        print(error)
"""
    code, output = jobs.run(PYTHON, '-c', code)
    refused = (
        f'another Snapshot of this program saves into {jobs.folder}/runs too, and each replaces '
        "the other's snapshots: give one Snapshot all objects (extra={...}), or each a folder of "
        'its own'
    )
    assert (code, output.splitlines()) == (0, [' '.join(['True'] * 6), *[refused] * 3])
    names = {path.name for path in (jobs.folder / 'runs').iterdir()}
    assert 'step-4' not in names and 'step-3' in names


def test_a_process_that_ends_finishes_its_save_first(jobs):
    """Also if a child that it has forked ends before."""
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
state = cpprun_worker.Snapshot('runs', model=torch.nn.Linear(3000, 1000))
assert state.save_async(7)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
sys.exit(0)
"""
    assert jobs.run(PYTHON, '-c', code) == (0, '')
    assert [path.name for path in (jobs.folder / 'runs').iterdir()] == ['step-7']


def test_import_needs_no_torch(jobs):
    module = ROOT / 'worker_sdk' / 'python'
    code = f"""
import sys
sys.path.insert(0, {str(module)!r})
import cpprun_worker
cpprun_worker.heartbeat(1)
assert not any(name.split('.')[0] in ('torch', 'numpy') for name in sys.modules)
"""
    assert jobs.run(PYTHON, '-c', code) == (0, '')
