"""cpprun under a real Slurm on two nodes."""
import pathlib
import re
import shutil
import subprocess
import time

import pytest
from long_tests import long

WORKER = pathlib.Path(__file__).with_name('lab_worker.py')
ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINING = ROOT / 'tests' / 'support' / 'python_snapshot_worker.py'
MANY = 1_000_000  # steps; more than a test waits for
SLOWEST = 300


def finish(process):
    try:
        return process.communicate(timeout=SLOWEST)[0]
    finally:
        process.kill()


def wait_for(is_so, what):
    until = time.monotonic() + SLOWEST
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def running(place):
    return all((place / f'running-{rank}').exists() for rank in range(2))


def has_ended(lab, number):
    ended = ('COMPLETED', 'FAILED', 'CANCELLED', 'OUT_OF_MEMORY')  # the others may be requeued
    return lab.job(number).get('JobState') in ended


def script(place, command):
    path = place / 'job.sh'
    path.write_text('#!/bin/bash\n' + command + '\n')
    return path


def submit(lab, place, command, *options):
    return lab.run('sbatch', '--parsable', '--nodes=2', '--requeue', '--open-mode=append',
                   f'--output={place}/out', *options, script(place, command)).stdout.strip()


def test_srun_needs_no_flags(lab, cpprun, place):
    out = finish(process := lab.start('srun', '--nodes=2', cpprun, WORKER, '2', place))
    assert process.returncode == 0, out
    assert 'Slurm job' in out and out.count('run id') == 1, out
    assert 'rank 0 of 2 on n1' in out and 'rank 1 of 2 on n2' in out, out


def test_further_tasks_of_a_node_end_at_once(lab, cpprun, place):
    process = lab.start('srun', '--nodes=2', '--ntasks-per-node=2', cpprun, WORKER, '2', place)
    out = finish(process)
    assert process.returncode == 0, out
    assert 'use --ntasks-per-node=1' in out, out
    assert out.count(' of 2 on n') == 2, out


def test_a_forgotten_srun_is_reported(lab, cpprun, place):
    alone = finish(process := lab.start('salloc', '--nodes=2', cpprun, WORKER, '2', place))
    assert process.returncode == 0, alone
    assert 'srun did not start this cpprun: it uses one node' in alone, alone
    process = lab.start('salloc', '--nodes=2', cpprun, '--nnodes=2', WORKER, '2', place)
    out = finish(process)
    assert process.returncode == 1 and 'write `srun cpprun ...`' in out, out


def test_usr1_asks_to_save(lab, cpprun, place):
    process = lab.start('srun', '--nodes=2', '--job-name=usr1', cpprun, WORKER, MANY, place)
    wait_for(lambda: running(place), 'the workers run')
    number = lab.ask('squeue', '-h', '--name=usr1', '-o', '%i').strip()
    lab.run('scancel', '--signal=USR1', number)
    out = finish(process)
    assert process.returncode == 75, out
    assert 'rank 0 saves at step' in out and 'rank 1 saves at step' in out, out
    assert 'stopped on request' in out, out


def test_a_stopped_job_is_requeued_and_continues(lab, cpprun, place):
    number = submit(lab, place, f'srun {cpprun} --requeue=1 {WORKER} 400 {place}')
    wait_for(lambda: running(place), 'the workers run')
    lab.run('scancel', '--signal=USR2', number)
    wait_for(lambda: has_ended(lab, number), 'the job ends')
    job, out = lab.job(number), (place / 'out').read_text()
    assert job['JobState'] == 'COMPLETED' and job['Restarts'] == '1', (job, out)
    assert f'job {number} is requeued' in out and f'run {number}.0.1' in out, out
    assert 'ends at step 400' in out, out


def test_excluded_hosts_are_left_out_of_the_requeued_job(lab, cpprun, place):
    bad = place / 'bad_on_n2'
    bad.write_text(f'#!/bin/sh\nif [ "$(hostname)" = n2 ]; then sleep 1; exit 3; fi\n'
                   f'exec python3 {WORKER} "$@"\n')
    bad.chmod(0o755)
    options = '--requeue=1 --nnodes=1:2 --exclude-after=1 --no-python'
    number = submit(lab, place, f'srun {cpprun} {options} {bad} 400 {place}', '--nodes=1-2')
    out = place / 'out'
    wait_for(lambda: out.exists() and 'n2 is excluded' in out.read_text(), 'n2 is excluded')
    wait_for((place / 'running-0').exists, 'the other node continues')
    lab.run('scancel', '--signal=USR2', number)
    wait_for(lambda: has_ended(lab, number), 'the job ends')
    job, out = lab.job(number), (place / 'out').read_text()
    assert job['JobState'] == 'COMPLETED' and job['Restarts'] == '1', (job, out)
    assert job['ExcNodeList'] == 'n2' and job['NodeList'] == 'n1', (job, out)
    assert f'job {number} gets other nodes than n2' in out, out


def test_the_hook_drains_an_excluded_host(lab, cpprun, place):
    bad = place / 'bad_on_n2'
    bad.write_text(f'#!/bin/sh\nif [ "$(hostname)" = n2 ]; then sleep 1; exit 3; fi\n'
                   f'exec python3 {WORKER} "$@"\n')
    bad.chmod(0o755)
    hook = ROOT / 'packaging/hooks/cpprun-exclude-slurm'
    options = f'--nnodes=1:2 --exclude-after=1 --exclude-hook={hook} --no-python'
    number = submit(lab, place, f'srun {cpprun} {options} {bad} 400 {place}', '--nodes=2')
    try:
        wait_for(lambda: 'DRAIN' in lab.ask('scontrol', 'show', 'node', 'n2'), 'n2 is drained')
        assert 'Reason=cpprun: ' in lab.ask('scontrol', 'show', 'node', 'n2')
        wait_for((place / 'running-0').exists, 'the other node continues')
    finally:
        lab.run('scancel', number)
        wait_for(lambda: has_ended(lab, number), 'the job ends')
        lab.run('scontrol', 'update', 'NodeName=n2', 'State=RESUME')


def test_the_batch_file_of_cpprunctl_saves_is_requeued_and_continues(lab, cpprun, place):
    written = subprocess.run([cpprun.with_name('cpprunctl'), 'slurm', 'script', '--cpus-per-task=1',
                              f'--output={place}/out', WORKER, '400', place],
                             stdout=subprocess.PIPE, text=True, check=True)
    (place / 'job.sbatch').write_text(written.stdout)
    variables = f'PATH={cpprun.parent}:/usr/bin:/bin,HOME=/root,SNAPSHOTS={place}/snapshots'
    number = lab.run('sbatch', '--parsable', f'--export={variables}',
                     place / 'job.sbatch').stdout.strip()
    wait_for(lambda: running(place), 'the workers run')
    lab.run('scancel', '--signal=TERM', number)
    wait_for(lambda: has_ended(lab, number), 'the job ends')
    job, out = lab.job(number), (place / 'out').read_text()
    assert job['JobState'] == 'COMPLETED' and job['Restarts'] == '1', (job, out)
    assert 'rank 0 saves at step' in out and 'rank 1 of 2 on n2 begins at step 0' in out, out
    assert 'ends at step 400' in out and f'run {number}.0.1' in out, out


PAGE = (ROOT / 'docs' / 'how-to' / 'slurm.md').read_text()
# What the page asks for, and what the lab has.
SIZES = {'--nodes=4': '--nodes=2 --cpus-per-task=1', '--gpus-per-node=8': '--gpus-per-node=2'}


@pytest.mark.parametrize('block', re.findall(r'```sh\n(.*?)```', PAGE, re.S),
                         ids=['srun', 'sbatch', 'script'])
def test_the_page_runs(lab, cpprun, place, block):
    for size, size_here in SIZES.items():
        block = block.replace(size, size_here)
    if block.startswith('cpprunctl'):
        block += 'sbatch train.sbatch\n'
    (place / 'train.py').write_text('import os; print("rank", os.environ["RANK"])')
    shutil.copy(ROOT / 'packaging' / 'slurm' / 'cpprun.sbatch', place)
    out = lab.run('env', f'--chdir={place}', f'PATH={cpprun.parent}:/usr/bin:/bin',
                  f'SNAPSHOTS={place}/snapshots', 'bash', '-ec', block).stdout
    if submitted := re.search(r'Submitted batch job (\d+)', out):
        wait_for(lambda: has_ended(lab, submitted[1]), 'the job ends')
        assert lab.job(submitted[1])['JobState'] == 'COMPLETED', lab.job(submitted[1])
        out = (place / f'slurm-{submitted[1]}.out').read_text()
    assert sorted(re.findall(r'rank \d', out)) == [f'rank {rank}' for rank in range(4)], out


def test_the_nodes_of_a_step_share_a_secret(lab, cpprun, place):
    """The lab's submit directory is on a local file system that all its nodes see."""
    out = finish(process := lab.start('srun', '--nodes=2', f'--chdir={place}', cpprun,
                                      '--slurm-secret=always', WORKER, '2', place))
    assert process.returncode == 0, out
    assert 'a secret of its own' in out and 'rank 1 of 2 on n2' in out, out
    assert not list(lab.folder.rglob('.cpprun-secret-*'))


def test_a_failed_job_is_not_requeued(lab, cpprun, place):
    number = submit(lab, place, f'srun {cpprun} --requeue --no-python /bin/false')
    wait_for(lambda: has_ended(lab, number), 'the job ends')
    job = lab.job(number)
    assert (job['JobState'], job['Restarts'], job['ExitCode']) == ('FAILED', '0', '1:0'), job


@long
@pytest.mark.parametrize('partition', ['main', 'quick'], ids=['grace-60', 'grace-0'])
def test_a_preempted_job_saves_and_continues(lab, cpprun, place, partition):
    """Without a grace time Slurm sends SIGTERM twice within milliseconds."""
    command = f'srun {cpprun} --requeue {WORKER} 1000 {place}'
    number = submit(lab, place, command, f'--partition={partition}')
    wait_for(lambda: running(place), 'the workers run')
    lab.run('srun', '--partition=urgent', '--nodes=2', '--exclusive', 'true')
    wait_for(lambda: has_ended(lab, number), 'the job ends')
    job, out = lab.job(number), (place / 'out').read_text()
    assert job['JobState'] == 'COMPLETED' and job['Restarts'] == '1', (job, out)
    assert 'rank 0 saves at step' in out and 'ends at step 1000' in out, out


@long
def test_a_job_that_is_preempted_three_times_and_loses_a_node_ends_as_if_undisturbed(
    large_lab, cpprun
):
    """Four of five nodes train with DDP. Slurm itself requeues a job that loses a node."""
    lab = large_lab

    def submit_training(name, sleep):
        folder = lab.folder / name
        command = (f'PYTHON_EXEC={ROOT}/.venv/bin/python OMP_NUM_THREADS=1 '
                   f'srun --kill-on-bad-exit=0 {cpprun} --requeue=3 {TRAINING} steps=60 '
                   f'every=2 sleep={sleep} folder={folder}/snapshots')
        folder.mkdir()
        (folder / 'job.sh').write_text(f'#!/bin/bash\n{command}\n')
        done = lab.run('sbatch', '--parsable', '--nodes=4', '--requeue', '--open-mode=append',
                       f'--output={folder}/out', folder / 'job.sh')
        return done.stdout.strip(), folder / 'out'

    def outcome(number, out):
        wait_for(lambda: has_ended(lab, number), 'the job ends')
        job, text = lab.job(number), out.read_text()
        assert job['JobState'] == 'COMPLETED', (job, text)
        return job, text, set(re.findall(r'parameters (\w+)', text))

    def steps_of(restarts):
        """The steps of the run after so many requeues."""
        text = out.read_text() if out.exists() else ''
        runs = text.split('[rank 0] started as')
        return runs[restarts + 1].count('[rank 0] step') if len(runs) > restarts + 1 else 0

    whole = outcome(*submit_training('whole', 0))[2]
    assert len(whole) == 1
    number, out = submit_training('disturbed', 0.5)
    for restarts in range(3):
        wait_for(lambda: steps_of(restarts) >= 4, 'it trains')  # noqa: B023
        lab.run('srun', '--partition=urgent', '--nodes=5', '--exclusive', 'true')
    wait_for(lambda: steps_of(3) >= 4, 'it trains')
    lab.lose(lab.ask('squeue', '-h', '-j', number, '-o', '%B').strip())  # its batch host
    job, text, result = outcome(number, out)
    assert job['Restarts'] == '4', (job, text)
    assert result == whole, text
