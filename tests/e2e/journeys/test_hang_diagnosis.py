"""One rank hangs and the others wait for it: the user's diagnosis by hand, and cpprun's own."""

import json
import re
import signal
import time

import pytest
from launches import ROOT, kill, poll, state_of

START = f"""
import os, signal, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk/python')!r})
import cpprun_worker as w
rank, attempt = int(os.environ['RANK']), int(os.environ['TORCHELASTIC_RESTART_COUNT'])
def all_reduce():
    w.count_collective()
    time.sleep(300)
def evaluate():
    time.sleep(300)
print('worker', rank, os.getpid(), flush=True)
"""

SKIPS = """
w.heartbeat(48211)
if attempt:
    print('continues', flush=True)
elif rank == 1:
    evaluate()
else:
    all_reduce()
"""


@pytest.fixture
def job(cpprun, tmp_path):
    """Starts three workers of this code."""

    def start(code, *flags, head=START, count=3):
        script = tmp_path / 'train.py'
        script.write_text(head + code)
        return cpprun.start(
            'cpprun', '--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0', '--rdzv-id=hangs',
            f'--nproc-per-node={count}', '--shutdown-timeout=1', '--log-dir', tmp_path / 'logs',
            *flags, script,
        )  # fmt: skip

    return start


def hung(job):
    """The reported ranks and reasons."""
    found = re.search(r'^cpprun: rank (\d) \(.*?\) hung \((.*)\); restarting ', job.output, re.M)
    if found is None:  # the summary wraps long causes
        found = re.search(r' hung on rank (\d) .*\n  cause +(.*(?:\n {12}.*)*)', job.output)
    assert found, job.output
    return found[1], '(' + ' '.join(found[2].split()) + ')'


def test_hang_is_diagnosed_by_hand(cpprun, job):
    code = "signal.signal(signal.SIGUSR1, lambda *_: print('received', rank, flush=True))\n"
    running = job(code + SKIPS, '--hang-timeout=off')
    running.wait_for_all(r'^worker', 3)

    def seen():
        code, shown = cpprun.run('cpprunctl', 'status', 'hangs', '--json')
        workers = json.loads(shown)['agents'][0]['workers'] if code == 0 else []
        return [worker for worker in workers if worker.get('step') == 48211]

    poll(lambda: len(seen()) == 3, 30, 'steps of all')
    code, shown = cpprun.run('cpprunctl', 'status', 'hangs')
    assert code == 0 and len(re.findall(r'\b48211\b', shown)) >= 3, shown
    assert cpprun.run('cpprunctl', 'signal', 'USR1', '--rank', 1, '--job', 'hangs')[0] == 0
    running.wait_for(r'^received 1$')
    running.send(signal.SIGINT)
    assert running.done() == 130
    assert 'received 0' not in running.output and 'received 2' not in running.output


def test_detected_hang_is_reported_and_charged_separately(job):
    running = job(SKIPS, '--hang-timeout=4', '--max-restarts=1')
    assert running.done() == 0, running.output
    rank, how = hung(running)
    assert rank == '1' and 'fewer collectives than the others (0)' in how
    assert 'restart 1 of 1 after hangs' in running.output
    assert running.output.index('the stacks of all') < running.output.index('restart 1 of 1')
    report = re.search(r'the stacks of all: (\S+)', running.output)[1]
    with open(report, encoding='utf-8') as file:
        stacks = file.read()
    assert stacks.count('in all_reduce') == 2 and stacks.count('in evaluate') == 1
    assert running.output.count('continues') == 3


WAYS = {
    'stopped': ('os.kill(os.getpid(), signal.SIGSTOP)', 'stopped by a signal, such as SIGSTOP'),
    'in the kernel': (
        'os.mkfifo(sys.argv[0] + ".fifo")\n'
        '    opened = (os.POSIX_SPAWN_OPEN, 0, sys.argv[0] + ".fifo", os.O_RDONLY, 0)\n'
        '    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[opened])',
        'it waits inside the kernel',
    ),
    'in user code': ('time.sleep(300)', 'it sends no heartbeats, so no more is known)'),
}


@pytest.mark.parametrize('way', WAYS)
def test_kinds_of_hangs_are_distinguished_without_the_sdk(job, way):
    code, expected = WAYS[way]
    running = job(
        f'if rank == 1:\n    {code}\ntime.sleep(300)\n', '--hang-timeout=2',
        head=re.sub('import cpprun_worker.*\n', '', START),
    )  # fmt: skip
    assert running.done() == 1
    rank, how = hung(running)
    assert expected in how, running.output
    assert rank == '1' or way == 'in user code'
    others = [text for _, text in WAYS.values() if text != expected]
    assert not [text for text in others if text in how]


def test_rank_in_a_breakpoint_does_not_hang(job):
    running = job('print("done", flush=True)', '--hang-timeout=1', '--debug-rank=1', count=2)
    match = running.wait_for(r'rank 1 \(pid (\d+)\) waits for a debugger')
    poll(lambda: state_of(int(match[1])) == 'T', 30, 'its stop')
    running.wait_for(r'^done$')
    begun = time.monotonic()
    poll(lambda: running.find('hung') or time.monotonic() - begun > 3, 10)  # three times its limit
    assert not running.find('hung')
    kill(int(match[1]), signal.SIGCONT)
    assert running.done() == 0


def test_barrier_timeout_names_missing_ranks(job):
    if not list(ROOT.glob('.venv/lib/python3*/site-packages/torch')):
        pytest.skip('no torch in .venv')
    code = (
        'import datetime, torch.distributed as dist\n'
        'dist.init_process_group("gloo")\n'
        'if rank == 1:\n'
        '    evaluate()\n'
        'try:\n'
        '    dist.monitored_barrier(timeout=datetime.timedelta(seconds=3))\n'
        'except RuntimeError:\n'
        '    time.sleep(rank)  # rank 2 fails because rank 0 does, and might report it first\n'
        '    raise\n'
    )
    running = job(code)
    assert running.done(120) == 1
    assert re.search(r'Rank 1 failed to pass monitoredBarrier', running.output), running.output
    running.wait_for(r'^error: .* failed on rank 0 ')
    assert '[collective_mismatch]' in running.output
