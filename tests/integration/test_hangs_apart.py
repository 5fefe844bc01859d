"""Hangs of real programs, distinguished: torch over Gloo with a rank missing, the SDK's own
examples, a wait inside the kernel that no signal reaches; and py-spy, if it is installed.

The first tests need torch; those of the SDK its examples (CPPRUN_BIN).
"""

import re
import shutil

import pytest
from conftest import BIN, PYTHON, poll, read_bytes, state_of
from launches import ROOT
from test_hangs import MODULE, START, root_cause, workers
from torch_python import training_env

LIMIT = '--hang-timeout=5'

TORCH = f"""
import os, sys
sys.path.insert(0, {str(MODULE)!r})
import torch, torch.distributed as dist
import cpprun_worker as w
rank = int(os.environ['RANK'])
dist.init_process_group('gloo')
def beat(step):
    w.heartbeat(step)
def reduce_gradients():
    w.count_collective()
    dist.all_reduce(torch.ones(4))
def wait_for_all():
    w.count_collective()
    dist.barrier()
def wait_for_a_batch():
    dist.recv(torch.zeros(4), src=0)
reduce_gradients()
beat(1)
"""


@pytest.fixture
def torch_workers(jobs):
    """Three workers with torch; they can import it."""
    if not list(ROOT.glob('.venv/lib/python3*/site-packages/torch')):
        pytest.skip('no torch in .venv')

    def start(code, *flags, head=TORCH, env={}):
        script = jobs.script(head + code, PYTHON)
        command = ('--standalone', '--nproc-per-node=3', LIMIT, '--shutdown-timeout=2', *flags)
        return jobs.cpprun(*command, script, env=training_env('torch', PYTHON, **env))

    return start


def stacks_of(jobs):
    """The report in the run folder, by rank."""
    (report,) = (jobs.folder / 'logs').glob('*/hang_round_*.txt')
    parts = re.split(r'^(?=rank \d+ \()', report.read_text(), flags=re.M)[1:]
    return {int(re.match(r'rank (\d+)', part)[1]): part for part in parts}


@pytest.mark.parametrize('waits_in', ['reduce_gradients', 'wait_for_all'])
def test_rank_that_skips_a_torch_collective(jobs, torch_workers, waits_in):
    code = f"""
if rank == 1:
    wait_for_a_batch()  # it has come to another place than the others
{waits_in}()
"""
    job = torch_workers(code, '--log-dir', jobs.folder / 'logs')
    assert job.done(120) == 1
    assert root_cause(job)[1] == '1', job.err
    assert 'fewer collectives than the others (1)' in root_cause(job)[2]
    assert ' hung on rank ' in job.err
    stacks = stacks_of(jobs)
    assert 'in wait_for_a_batch' in stacks[1]
    for rank in (0, 2):
        assert f'in {waits_in}' in stacks[rank]
        assert 'step 1, 2 collectives' in stacks[rank]


# Rank 1 is the last to work, so that the others have been silent for longer than it.
LATE = """
import time
def load_next_batch():
    time.sleep(300)
if rank == 1:
    end = time.monotonic() + 2  # long before the agent's last look, which would find it busy
    while time.monotonic() < end:
        pass
"""


def check_rank_1_is_chosen_by_its_stack(job):
    assert job.done(120) == 1
    assert root_cause(job)[1] == '1', job.err
    assert re.search(r'it is in load_next_batch \(\S+:\d+\), the others wait in barrier',
                     root_cause(job)[2]), job.err
    chosen, others = job.err.split('the one to look at:')[1].split('\nranks 0, 2:\n')
    assert 'load_next_batch' in chosen
    assert re.match(r' +barrier \(distributed_c10d\.py:\d+\)\n', others)


def test_rank_outside_a_barrier_without_heartbeats(torch_workers, jobs):
    if not shutil.which('py-spy', path=jobs.env()['PATH']):
        pytest.skip('py-spy is not there')
    code = TORCH.split('def beat')[0].replace('import cpprun_worker as w', '') + LATE + """
if rank == 1:
    load_next_batch()
dist.barrier()
"""
    job = torch_workers(code, head='')
    check_rank_1_is_chosen_by_its_stack(job)


NO_TOOLS = '/nowhere'  # a PATH without py-spy and gdb
NO_RECORDER = {'TORCH_FR_BUFFER_SIZE': '0'}  # of torch's flight recorder, which names the rank too
SLEEPS = r'it waits in \w*nanosleep\w* in the kernel, the others for threads of their own'


def test_rank_outside_a_barrier_without_heartbeats_and_stacks(torch_workers):
    """The kernel shows which one sleeps."""
    code = TORCH.split('def beat')[0].replace('import cpprun_worker as w', '') + LATE + """
if rank == 1:
    load_next_batch()
dist.barrier()
"""
    job = torch_workers(code, head='', env={'PATH': NO_TOOLS})
    assert job.done(120) == 1
    assert root_cause(job)[1] == '1', job.err
    assert re.search(SLEEPS, root_cause(job)[2]), job.err


def test_rank_that_sleeps_while_the_others_wait_for_work(torch_workers):
    """work.wait() has no Python frame."""
    code = """
import time
def load_next_batch():
    time.sleep(300)
if rank == 1:
    time.sleep(1)  # the others have been silent for longer
beat(7)
work = dist.all_reduce(torch.ones(4), async_op=True) if rank != 1 else None
load_next_batch() if rank == 1 else work.wait()
"""
    job = torch_workers(code, env=NO_RECORDER)
    assert job.done(120) == 1
    assert root_cause(job)[1] == '1', job.err
    assert re.search(SLEEPS, root_cause(job)[2]), job.err


def test_rank_outside_a_barrier_at_the_same_step(torch_workers):
    """No worker counts its collectives."""
    code = LATE + """
beat(7)
if rank == 1:
    load_next_batch()
dist.barrier()
"""
    check_rank_1_is_chosen_by_its_stack(torch_workers(code, env=NO_RECORDER))


def test_sdk_rank_that_reaches_no_collective(jobs):
    """Rank 1 stays in front of its step, the other waits in DDP's all_reduce."""
    if not (BIN / 'ex_digits').exists():
        pytest.skip('the C++ examples are not built')
    args = ('--standalone', '--nproc-per-node=2', LIMIT, '--shutdown-timeout=2', '--no-python')
    job = jobs.cpprun(
        *args, '--log-dir', jobs.folder / 'logs', BIN / 'ex_digits',
        env={'CPPRUN_FAULTS': 'slow:rank=1,epoch=1,ms=600000'},
    )  # fmt: skip
    assert job.done(120) == 1
    assert root_cause(job)[1] == '1', job.err
    assert 'fewer collectives than the others' in root_cause(job)[2]
    stacks = stacks_of(jobs)
    assert 'nanosleep' in stacks[1]
    assert 'nanosleep' not in stacks[0]


def test_wait_inside_the_kernel(jobs):
    """posix_spawn() waits in state D until its child has executed its program, and this child first
    waits for a writer of a FIFO: as a reader of a disk or file server that has gone."""
    code = """
fifo = os.environ['MARKS'] + '/fifo'
if rank == '0':
    os.mkfifo(fifo)
    with open(os.environ['MARKS'] + '/pid', 'w') as file:
        file.write(str(os.getpid()))
    opened = (os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)
    os.posix_spawn('/bin/true', ['true'], {}, file_actions=[opened])
time.sleep(120)
"""
    job = workers(jobs, code, '--hang-timeout=2', '--shutdown-timeout=1')
    (pid,) = jobs.numbers(['pid'])
    poll(lambda: state_of(pid) == 'D', 20, 'its wait')
    assert job.done(60) == 1
    assert root_cause(job)[1] == '0', job.err
    assert 'it waits inside the kernel' in root_cause(job)[2]
    assert re.search(r'rank 0 .*: no heartbeats; blocked inside the kernel', job.err)
    assert 'stopped by a signal' not in job.err
    assert state_of(pid) == ''


def test_py_spy_shows_a_script_without_the_module(jobs):
    if not shutil.which('py-spy', path=jobs.env()['PATH']):
        pytest.skip('py-spy is not there')
    code = START.split('sys.path')[0] + """
def wait_for_a_file_that_never_comes():
    time.sleep(120)
wait_for_a_file_that_never_comes()
"""
    job = jobs.cpprun('--standalone', '--hang-timeout=2', '--no-python', jobs.script(code, PYTHON))
    assert job.done(60) == 1
    assert 'it sends no heartbeats, so no more is known' in root_cause(job)[2]
    shown = job.err.split('the one to look at:')[1]
    assert re.search(r'wait_for_a_file_that_never_comes \(.*worker-\d+:\d+\)', shown), job.err
    assert not [pid for pid in jobs.alive() if b'py-spy' in read_bytes(f'/proc/{pid}/cmdline')]
