"""Faults of a Slurm job and of Slurm itself, with cpprun under a real Slurm."""
import re
import time

import pytest
from long_tests import long
from test_slurm import MANY, ROOT, WORKER, finish, has_ended, running, submit, wait_for
from worlds import check_one_world_at_a_time, worlds_of

DIGITS = ROOT / 'examples' / 'python' / 'digits_ddp.py'


class Job:
    """A batch job of the worker of the labs. `script` runs under bash."""

    def __init__(self, lab, place, script, *options):
        self.lab, self.place = lab, place
        self.number = submit(lab, place, script, *options)

    def out(self):
        path = self.place / 'out'
        return path.read_text() if path.exists() else ''

    def field(self, name):
        return self.lab.job(self.number).get(name)

    def step(self):
        path = self.place / 'step'
        return int(path.read_text()) if path.exists() else 0

    def trains(self, steps=20):
        """Waits until so many further steps are saved."""
        until = self.step() + steps
        wait_for(lambda: self.step() >= until, 'it trains')

    def ends(self):
        """Lets the training end; the fields of the job."""
        (self.place / 'finish').touch()
        return self.is_over()

    def is_over(self):
        wait_for(lambda: has_ended(self.lab, self.number), 'the job ends')
        return self.lab.job(self.number)

    def run_on(self, node, *command):
        """As a user does who supervises the job."""
        return self.lab.run('srun', f'--jobid={self.number}', '--overlap', '--nodes=1',
                            f'--nodelist={node}', *command, check=False)


def begins(text, rank):
    """How often the rank has begun."""
    return text.count(f'rank {rank} of ')


def is_past(seconds):
    """A condition that comes true after so many seconds."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def test_a_step_of_two_components_is_one_job(lab, cpprun, place):
    process = lab.start('salloc', '--nodes=1', ':', '--nodes=1',
                        'srun', '--het-group=0,1', cpprun, WORKER, '2', place)
    out = finish(process)
    assert process.returncode == 0, out
    assert 'rank 0 of 2 on n1' in out and 'rank 1 of 2 on n2' in out, out


def test_gpus_of_a_node_become_workers(lab, cpprun, place):
    process = lab.start('srun', '--nodes=2', '--gpus-per-node=2', cpprun, WORKER, '2', place)
    out = finish(process)
    assert process.returncode == 0, out
    assert '2 workers per node' in out and out.count(' of 4 on n') == 4, out
    assert out.count('Setting OMP_NUM_THREADS') == 1, out


def test_gpus_that_are_masked_per_task_are_named(lab, cpprun, place):
    process = lab.start('srun', '--nodes=2', '--ntasks-per-node=2', '--gpus-per-task=1', cpprun,
                        WORKER, '2', place)
    out = finish(process)
    assert process.returncode == 0, out
    assert '(with --gpus-per-node, not --gpus-per-task)' in ' '.join(out.split()), out


def test_slurmctld_may_restart(lab, cpprun, place):
    job = Job(lab, place, f'srun {cpprun} {WORKER} {MANY} {place}')
    wait_for(lambda: running(place), 'the workers run')
    lab.stop_controller()
    try:
        job.trains()
    finally:
        lab.start_controller()
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED', (fields, job.out())
    assert begins(job.out(), 0) == begins(job.out(), 1) == 1, job.out()


def test_munge_may_be_down(lab, cpprun, place):
    job = Job(lab, place, f'srun {cpprun} {WORKER} {MANY} {place}')
    wait_for(lambda: running(place), 'the workers run')
    lab.stop_munge()
    try:
        job.trains()
    finally:
        lab.start_munge()
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED', (fields, job.out())
    assert begins(job.out(), 0) == begins(job.out(), 1) == 1, job.out()


def test_a_suspended_job_continues_in_its_round(lab, cpprun, place):
    job = Job(lab, place, f'srun {cpprun} --max-restarts=0 {WORKER} {MANY} {place}')
    wait_for(lambda: running(place) and job.step() > 0, 'the workers run')
    lab.run('scontrol', 'suspend', job.number)
    wait_for(lambda: job.field('JobState') == 'SUSPENDED', 'the job is suspended')
    wait_for(is_past(8), 'all leases end')
    lab.run('scontrol', 'resume', job.number)
    job.trains()
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED' and fields['Restarts'] == '0', (fields, job.out())
    assert begins(job.out(), 0) == begins(job.out(), 1) == 1, job.out()
    check_one_world_at_a_time(place, job.out)


HOG = """\
import os, time
if os.environ['RANK'] == '1':
    hog = b'x' * (300 << 20)
time.sleep(600)
"""


def test_a_worker_over_the_memory_limit_of_its_step_is_named(memory_lab, cpprun):
    worker = memory_lab.folder / 'hog.py'
    worker.write_text(HOG)
    process = memory_lab.start('srun', '--mem=150', cpprun, '--nproc-per-node=2', worker)
    out = finish(process)
    assert process.returncode == 1, out
    assert 'rank 1' in out and "(the kernel's OOM killer: out of memory)" in out, out
    wait_for(lambda: memory_lab.job(1)['JobState'] == 'OUT_OF_MEMORY', 'Slurm names it as well')


def test_scancel_of_a_running_job_saves_and_requeues_nothing(lab, cpprun, place):
    job = Job(lab, place, f'srun {cpprun} --requeue {WORKER} {MANY} {place}')
    wait_for(lambda: running(place), 'the workers run')
    lab.run('scancel', job.number)
    fields = job.is_over()
    assert (fields['JobState'], fields['Restarts']) == ('CANCELLED', '0'), (fields, job.out())
    assert 'rank 0 saves' in job.out() and 'rank 1 saves' in job.out(), job.out()
    assert 'by itself (scancel, or a preemption)' in job.out(), job.out()


SLOW = """\
#!/bin/sh
echo "$*" >>"$0.calls"
sleep 2
PATH=${PATH#*:} exec scontrol "$@"
"""


def test_a_late_signal_does_not_end_the_requeue(lab, cpprun, place):
    """Slurm's SIGTERM may reach a node when others have stopped the job already."""
    scontrol = place / 'bin' / 'scontrol'
    scontrol.parent.mkdir()
    scontrol.write_text(SLOW)
    scontrol.chmod(0o755)
    path = f'PATH={scontrol.parent}:$PATH'
    job = Job(lab, place, f'{path} srun {cpprun} --requeue=1 {WORKER} {MANY} {place}')
    wait_for(lambda: running(place), 'the workers run')
    job.run_on('n2', 'pkill', '-TERM', '-x', 'cpprun')
    wait_for(scontrol.with_name('scontrol.calls').exists, 'cpprun asks Slurm')
    job.run_on('n1', 'pkill', '-TERM', '-x', 'cpprun')
    wait_for(lambda: f'job {job.number} is requeued' in job.out(), 'the requeue')
    assert job.ends()['JobState'] == 'COMPLETED', job.out()


# The second run of the job has both nodes.
FORMING = 'srun --nodes=$((1 + ${SLURM_RESTART_COUNT:-0})) '


def waits_for_nodes(job):
    return 'run id' in job.out() or 'Slurm job' in job.out()


def test_scancel_ends_a_job_whose_nodes_still_meet(lab, cpprun, place):
    job = Job(lab, place, f'{FORMING} {cpprun} --nnodes=2 --requeue {WORKER} {MANY} {place}')
    wait_for(lambda: waits_for_nodes(job), 'the first node waits')
    lab.run('scancel', job.number)
    fields = job.is_over()
    assert (fields['JobState'], fields['Restarts']) == ('CANCELLED', '0'), (fields, job.out())
    assert begins(job.out(), 0) == 0, job.out()


def test_a_job_that_is_stopped_while_its_nodes_meet_is_requeued(lab, cpprun, place):
    job = Job(lab, place, f'{FORMING} {cpprun} --nnodes=2 --requeue=1 {WORKER} 20 {place}')
    wait_for(lambda: waits_for_nodes(job), 'the first node waits')
    lab.run('scancel', '--signal=USR2', job.number)
    fields = job.is_over()
    assert (fields['JobState'], fields['Restarts']) == ('COMPLETED', '1'), (fields, job.out())
    assert 'rank 1 of 2' in job.out(), job.out()


def test_a_job_that_is_stopped_while_a_round_is_formed_again_is_requeued(lab, cpprun, place):
    job = Job(lab, place, f'srun --kill-on-bad-exit=0 {cpprun} --nnodes=2 --max-restarts=3 '
                          f'--requeue=1 {WORKER} 1000 {place}')
    wait_for(lambda: running(place) and job.step() > 0, 'the workers run')
    job.run_on('n2', 'pkill', '-KILL', '-x', 'cpprun')  # the processes of that node alone
    wait_for(lambda: 'rank 0 saves' in job.out(), 'the other node stops its worker')
    lab.run('scancel', '--signal=USR2', job.number)
    fields = job.is_over()
    assert (fields['JobState'], fields['Restarts']) == ('COMPLETED', '1'), (fields, job.out())
    assert re.search(rf'begins at step [1-9]\d* of run {job.number}.0.1', job.out()), job.out()
    check_one_world_at_a_time(place, job.out)


def test_jobs_of_two_users_share_nodes(lab, cpprun, place):
    closed = [str(folder) for folder in place.parents if not folder.stat().st_mode & 0o001]
    if closed:
        pytest.skip(f'other users cannot enter {closed[-1]}')
    nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    folders, jobs = [place / 'root', place / 'nobody'], []
    for folder, user in zip(folders, ([], nobody)):
        folder.mkdir()
        folder.chmod(0o777)
        jobs.append(lab.start(*user, 'srun', '--nodes=2', f'--chdir={folder}', cpprun, WORKER,
                              MANY, folder))
    for folder in folders:
        wait_for(lambda: running(folder), 'both jobs run at the same time')  # noqa: B023
    for folder, process in zip(folders, jobs):
        (folder / 'finish').touch()
        out = finish(process)
        assert process.returncode == 0 and out.count(' of 2 on n') == 2, out


@long
def test_a_job_at_its_time_limit_saves_and_continues(lab, cpprun, place):
    command = f'srun {cpprun} --requeue=1 {WORKER} {MANY} {place}'
    job = Job(lab, place, command, '--time=2', '--signal=TERM@60')
    wait_for(lambda: job.field('Restarts') == '1' or has_ended(lab, job.number), 'it is requeued')
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED' and fields['Restarts'] == '1', (fields, job.out())
    assert 'rank 0 saves at step' in job.out() and 'rank 1 saves at step' in job.out()


@pytest.mark.parametrize('node', ['n1', pytest.param('n2', marks=long)])
def test_the_first_round_waits_for_a_node_that_starts_late(lab, cpprun, place, node):
    late = f'[ $(hostname) = {node} ] && sleep 4; exec "$@"'
    command = ['bash', '-c', late, 'late', cpprun, '--nnodes=1:2', WORKER, '2', place]
    out = finish(process := lab.start('srun', '--nodes=2', *command))
    assert process.returncode == 0, out
    assert [begins(out, rank) for rank in range(2)] == [1, 1], out


ELASTIC = 'srun --no-kill --kill-on-bad-exit=0'


@long
@pytest.mark.parametrize('node', ['n2', 'n3'])
@pytest.mark.parametrize('how', ['power', 'cable'])
def test_a_job_continues_without_a_lost_node(large_lab, cpprun, node, how):
    """No connection of the node is closed where its cable is unplugged."""
    lab, place = large_lab, large_lab.folder / 'job'
    place.mkdir()
    job = Job(lab, place, f'{ELASTIC} {cpprun} --nnodes=2:3 {WORKER} {MANY} {place}',
              '--nodes=3', '--no-kill')
    wait_for(lambda: running(place) and (place / 'running-2').exists(), 'the workers run')
    if how == 'cable':
        lab.unplug(node)
    lab.lose(node)
    wait_for(lambda: ' of 2 on n1' in job.out(), 'the others continue')
    job.trains()
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED' and fields['Restarts'] == '0', (fields, job.out())
    check_one_world_at_a_time(place, job.out)


@long
def test_the_digits_example_continues_without_a_lost_node(large_lab, cpprun):
    lab, place = large_lab, large_lab.folder / 'job'
    place.mkdir()
    snapshots = place / 'snapshots'
    job = Job(lab, place, f'PYTHON_EXEC={ROOT}/.venv/bin/python OMP_NUM_THREADS=1 {ELASTIC} '
                          f'{cpprun} --nnodes=2:3 {DIGITS} --epochs 12 --sleep 0.5 '
                          f'--snapshot {snapshots}', '--nodes=3', '--no-kill')
    wait_for(lambda: len(list(snapshots.glob('step-*'))) >= 2, 'it saves')
    lab.lose('n3')
    fields, out = job.is_over(), job.out()
    assert fields['JobState'] == 'COMPLETED' and fields['Restarts'] == '0', (fields, out)
    assert 'resuming from snapshot' in out and 'training epoch 12 of 12 done' in out, out


@long
@pytest.mark.parametrize('how', ['power', 'cable', 'crash'])
def test_a_job_that_loses_its_batch_host_is_requeued(large_lab, cpprun, how):
    """Where only the cable is unplugged, its agent and its worker live on, cut off. Where the node
    crashes, its connections are closed, and another node leads the job until the requeue."""
    lab, place = large_lab, large_lab.folder / 'job'
    place.mkdir()
    job = Job(lab, place, f'{ELASTIC} {cpprun} --nnodes=2:3 --requeue=1 {WORKER} {MANY} {place}',
              '--nodes=3', '--no-kill')
    wait_for(lambda: running(place) and job.step() > 0, 'the workers run')
    assert job.field('BatchHost') == 'n1', lab.job(job.number)
    if how != 'crash':
        lab.unplug('n1')
    if how != 'cable':
        lab.lose('n1')
    wait_for(lambda: job.field('Restarts') == '1', f'it is requeued: {job.out()}')
    wait_for(lambda: f'run {job.number}.0.1' in job.out(), 'it runs again')
    job.trains()
    fields = job.ends()
    assert fields['JobState'] == 'COMPLETED', (fields, job.out())
    assert 'n1' not in fields['NodeList'], fields
    assert re.search(rf'begins at step [1-9]\d* of run {job.number}.0.1', job.out()), job.out()
    assert len(worlds_of(place)) == 2, (worlds_of(place), job.out())
    check_one_world_at_a_time(place, job.out)


@long
def test_a_lost_batch_host_that_could_train_alone_is_only_named(large_lab, cpprun):
    lab, place = large_lab, large_lab.folder / 'job'
    place.mkdir()
    job = Job(lab, place, f'{ELASTIC} {cpprun} --nnodes=1:2 --requeue --log-dir={place}/logs '
                          f'{WORKER} {MANY} {place}', '--nodes=2', '--no-kill')
    wait_for(lambda: running(place) and job.step() > 0, 'the workers run')
    lab.unplug('n1')

    def warnings():
        return ''.join(path.read_text() for path in (place / 'logs').rglob('events.jsonl'))
    wait_for(lambda: f'scontrol requeue {job.number}' in warnings(), 'the other node reports it')
    assert job.field('Restarts') == '0', lab.job(job.number)
    lab.run('scancel', job.number)
    check_one_world_at_a_time(place, job.out)
