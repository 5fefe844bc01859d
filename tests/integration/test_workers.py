"""Workers that end in every way, or ignore signals."""

import os
import signal

import pytest
from conftest import has_no_traces, is_alive, kill, poll


def root_cause_index(running):
    return running.err.split('Root Cause', 1)[1]


@pytest.mark.parametrize('code', [0, 1, 2, 127, 255])
def test_exit_code_of_a_worker_is_reported(jobs, code):
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(f'[ "$RANK" = 0 ] || exit {code}'))
    assert running.done(20) == (0 if code == 0 else 1), running.output
    if code != 0:
        assert f'exitcode  : {code} (pid:' in root_cause_index(running)
        assert f'exited with code {code}' in running.err
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('name', ['SEGV', 'KILL', 'ABRT', 'TERM', 'INT', 'HUP', 'USR1', 'PIPE'])
def test_signal_that_ended_a_worker_is_reported(jobs, name):
    number = signal.Signals[f'SIG{name}']
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(f'[ "$RANK" = 0 ] || kill -{name} $$'))
    assert running.done(20) == 1, running.output
    assert f'exitcode  : -{int(number)} (pid:' in root_cause_index(running)
    assert f'SIG{name}' in running.err


def test_real_time_signal(jobs):
    running = jobs.cpprun(jobs.sh('kill -40 $$'))
    assert running.done(20) == 1, running.output
    assert 'exitcode  : -40' in root_cause_index(running)


def test_worker_that_ignores_sigterm_is_killed_after_the_grace(jobs):
    worker = jobs.sh(
        'trap "" TERM; echo up >"$MARKS/up$RANK"\n'
        'while [ ! -e "$MARKS/up0" ] || [ ! -e "$MARKS/up1" ]; do sleep 0.01; done\n'
        '[ "$RANK" = 0 ] && exit 3\nwhile :; do sleep 0.1; done'
    )
    running = jobs.cpprun('--nproc-per-node=2', '--shutdown-timeout=1', worker)
    assert running.done(20) == 1, running.output
    assert running.seconds > 1
    assert 'exitcode  : 3' in root_cause_index(running)
    assert jobs.wait_until_gone() == []


def test_zero_grace_kills_immediately(jobs):
    worker = jobs.sh('trap "" TERM; echo up >"$MARKS/up"; while :; do sleep 1; done')
    running = jobs.cpprun('--shutdown-timeout=0', worker)
    jobs.mark('up')
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    assert jobs.wait_until_gone() == []


def test_suspended_worker_is_continued_and_stopped(jobs):
    """SIGSTOP is no exit: the job waits for it; a stop still reaches it."""
    worker = jobs.sh('trap "exit 0" TERM; echo $$ >"$MARKS/pid"; while :; do sleep 0.1; done')
    running = jobs.cpprun('--shutdown-timeout=3600', worker)
    pid = int(jobs.mark('pid'))
    os.kill(pid, signal.SIGSTOP)
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    assert jobs.wait_until_gone() == []


def test_suspended_worker_beside_a_failing_one(jobs):
    worker = jobs.sh(
        'echo $$ >"$MARKS/pid$RANK"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done\n'
        '[ "$RANK" = 0 ] && exit 3\nwhile :; do sleep 0.1; done'
    )
    running = jobs.cpprun('--nproc-per-node=2', worker)
    os.kill(jobs.numbers(['pid0', 'pid1'])[1], signal.SIGSTOP)
    (jobs.marks / 'go').touch()
    assert running.done(20) == 1, running.output
    assert 'exitcode  : 3' in root_cause_index(running)
    assert jobs.wait_until_gone() == []


DAEMON = (
    'import os, signal, sys, time\n'
    'marks, rank = os.environ["MARKS"], os.environ["RANK"]\n'
    'def daemon():\n'
    '    if os.fork(): return\n'
    '    os.setsid()\n'
    '    if os.fork(): os._exit(0)\n'
    '    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
    '    with open(f"{marks}/new{rank}", "w") as f: f.write(str(os.getpid()))\n'
    '    os.rename(f"{marks}/new{rank}", f"{marks}/daemon{rank}")\n'
    '    while True: signal.pause()\n'
    'daemon()\n'
    'while not os.path.exists(f"{marks}/daemon{rank}"): time.sleep(0.01)\n'
)
WAIT = 'while not os.path.exists(f"{marks}/go"): time.sleep(0.01)\n'


@pytest.mark.parametrize('end', ['sys.exit(3)', 'os.kill(os.getpid(), 9)'])
def test_daemons_of_a_failed_worker_end_immediately(jobs, ground, end):
    running = jobs.cpprun('--nproc-per-node=2', jobs.py(DAEMON + end), wrap=ground)
    assert running.done(20) == 1, running.output
    assert jobs.wait_until_gone(0.5) == []


def test_daemons_of_a_successful_worker_get_five_seconds(jobs, ground):
    running = jobs.cpprun(jobs.py(DAEMON), wrap=ground)
    assert running.done(20) == 0, running.output
    assert running.seconds > 4.5
    assert jobs.wait_until_gone(0.5) == []


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_daemons_end_with_a_signalled_launcher(jobs, ground, number):
    running = jobs.cpprun('--nproc-per-node=2', jobs.py(DAEMON + WAIT), wrap=ground)
    jobs.numbers(['daemon0', 'daemon1'])
    running.send(number)
    assert running.done(20) == 128 + number, running.output
    assert jobs.wait_until_gone(0.5) == []


def test_daemons_end_after_sigkill(jobs, ground):
    running = jobs.cpprun('--nproc-per-node=2', jobs.py(DAEMON + WAIT), wrap=ground)
    jobs.numbers(['daemon0', 'daemon1'])
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_daemon_without_environment_ends_where_a_cgroup_is_available(jobs):
    worker = jobs.sh(
        'cat /proc/self/cgroup >"$MARKS/cgroup"\n'
        'setsid env -i sh -c \'echo $$ >"$0/pid"; exec sleep 60\' "$MARKS" &\n'
        'while [ ! -s "$MARKS/pid" ]; do sleep 0.01; done; exit 3'
    )
    running = jobs.cpprun(worker)
    pid = int(jobs.mark('pid'))
    jobs.watch(pid)
    assert running.done(20) == 1, running.output
    if '/cpprun-' not in jobs.mark('cgroup'):
        kill(pid)
        pytest.skip('no cgroup v2 of our own here')
    poll(lambda: not is_alive(pid), 1, 'the end of the daemon')


def test_fork_bomb_of_a_hundred_ends(jobs, ground):
    code = 'i=0; while [ $i -lt 100 ]; do setsid sleep 60 & i=$((i+1)); done; exit 1'
    running = jobs.cpprun(jobs.sh(code), wrap=ground)
    assert running.done(30) == 1, running.output
    assert jobs.wait_until_gone(1) == []


def test_workers_that_fail_simultaneously(jobs):
    worker = jobs.sh(
        'echo up >"$MARKS/up$RANK"; while [ ! -e "$MARKS/go" ]; do :; done; exit $((10+RANK))'
    )
    running = jobs.cpprun('--nproc-per-node=4', worker)
    for rank in range(4):
        jobs.mark(f'up{rank}')
    (jobs.marks / 'go').touch()
    assert running.done(20) == 1, running.output
    first = int(running.find(r'exitcode  : 1(\d)')[1])
    assert first in range(4)
    assert running.err.count('Root Cause') == 1
    assert jobs.wait_until_gone() == []
