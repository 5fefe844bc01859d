"""SIGKILL for the launcher or its reaper process, and signals of terminals: no process remains."""

import contextlib
import os
import pty
import signal
import time

import pytest
from conftest import (
    BIN,
    cgroup_folders,
    free_port,
    has_no_traces,
    is_alive,
    kill,
    poll,
    state_of,
)
from process_info import reaper_of

UP = 'echo $$ >"$MARKS/new$RANK"; mv "$MARKS/new$RANK" "$MARKS/up$RANK"\n'
FOR_EVER = UP + 'while :; do sleep 0.1; done'
STUBBORN = 'trap "" TERM INT HUP\n' + FOR_EVER


def own_terminal():
    """The terminal of stdin becomes that of this session."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


def start(jobs, *args, code=FOR_EVER, **options):
    """A job with two running workers; returns it and their process ids."""
    running = jobs.cpprun('--nproc-per-node=2', *args, jobs.sh(code), **options)
    return running, jobs.numbers(['up0', 'up1'])


def start_round(jobs, *args, **options):
    """The same, once the agent knows that both workers run: a signal ends by SIGKILL a worker whose
    start is not complete."""
    running, workers = start(jobs, f'--log-dir={jobs.folder}/logs', *args, **options)

    def has_started():
        files = (jobs.folder / 'logs').glob('*/events.jsonl')
        return any('"event":"round_started"' in file.read_text() for file in files)

    poll(has_started, what='the event round_started')
    return running, workers


@pytest.mark.parametrize('code', [FOR_EVER, STUBBORN], ids=['willing', 'stubborn'])
def test_sigkill_of_the_launcher(jobs, ground, code):
    running, _ = start(jobs, code=code, wrap=ground)
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_killed_reaper_is_replaced(jobs, ground):
    running, workers = start(jobs, wrap=ground)
    first = reaper_of(running.pid)
    kill(first)
    poll(lambda: reaper_of(running.pid) != first, what='another reaper process')
    assert all(is_alive(pid) for pid in workers)
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_reaper_is_killed_repeatedly(jobs):
    running, workers = start(jobs)
    fds = len(os.listdir(f'/proc/{running.pid}/fd')) + 3  # some come with the job's first moments
    for _ in range(20):
        old = reaper_of(running.pid)
        kill(old)
        poll(lambda gone=old: reaper_of(running.pid) != gone, what='another reaper process')
    poll(lambda: len(os.listdir(f'/proc/{running.pid}/fd')) <= fds, 5, 'no descriptors lost')
    assert all(is_alive(pid) for pid in workers)
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('is_reaper_first', [True, False])
def test_sigkill_of_launcher_and_reaper_ends_the_workers(jobs, ground, is_reaper_first):
    """Only the workers' parent-death signal of the kernel remains. The cgroup, which is empty, has
    no owner left."""
    code = 'echo "$CPPRUN_TOKEN" >"$MARKS/token"\n' + FOR_EVER
    running, _ = start(jobs, code=code, wrap=ground)
    token = jobs.mark('token')
    pair = [reaper_of(running.pid), running.pid]
    os.kill(running.pid, signal.SIGSTOP)  # so that it makes no other reaper process
    for pid in pair if is_reaper_first else reversed(pair):
        kill(pid)
    running.process.wait()
    assert jobs.wait_until_gone(1) == []
    for folder in cgroup_folders(token):
        folder.rmdir()


@pytest.mark.parametrize('milliseconds', [0, 1, 2, 3, 5, 8, 12, 20, 40])
def test_sigkill_at_any_moment_of_the_start(jobs, ground, milliseconds):
    running = jobs.cpprun('--nproc-per-node=8', jobs.sh('setsid sleep 60 & sleep 60'), wrap=ground)
    end = time.monotonic() + milliseconds / 1000
    while time.monotonic() < end:
        pass
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1.5) == []


def test_sigkill_while_stopping(jobs, ground):
    running, _ = start(jobs, code=STUBBORN, wrap=ground)
    running.send(signal.SIGTERM)
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_sigkill_while_restarting(jobs):
    worker = jobs.sh('echo "$TORCHELASTIC_RESTART_COUNT"; setsid sleep 60 & exit 1')
    running = jobs.cpprun('--nproc-per-node=4', '--max-restarts=1000', worker)
    running.wait_for(r'^5$')
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_frozen_launcher_is_killed(jobs):
    running, _ = start(jobs)
    os.kill(running.pid, signal.SIGSTOP)
    kill(running.pid)
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_signal_is_forwarded_and_is_the_exit_code(jobs, number):
    name = number.name.removeprefix('SIG')
    code = f'trap "echo got {name}; exit 0" {name}\n' + FOR_EVER
    running, _ = start_round(jobs, code=code)
    running.send(number)
    assert running.done(20) == 128 + number, running.output
    assert running.out.count(f'got {name}') == 2
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGQUIT])
def test_second_ctrl_c_kills_immediately(jobs, number):
    code = 'trap "echo got" QUIT INT\n' + FOR_EVER
    running, _ = start_round(jobs, '--shutdown-timeout=3600', code=code)
    running.send(number)
    running.wait_for_all('^got', 2)
    running.send(number)
    assert running.done(20) == 128 + number, running.output
    assert jobs.wait_until_gone() == []


def test_storm_of_signals(jobs):
    running, _ = start(jobs, code=STUBBORN)
    with contextlib.suppress(ProcessLookupError):
        for _ in range(50):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(running.pid, number)
    assert running.done(20) >= 128
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('number', [signal.SIGUSR1, signal.SIGSEGV, signal.SIGABRT, signal.SIGALRM])
def test_unhandled_signals_end_the_launcher_and_its_workers(jobs, number):
    running, _ = start(jobs)
    running.send(number)
    assert running.done(20) == -number
    assert jobs.wait_until_gone(1) == []


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signal_before_workers_run(jobs, number):
    """Of two nodes one never comes: the launcher waits, and ends on a signal."""
    worker = jobs.sh('echo x >"$MARKS/started"')
    meet = ('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    running = jobs.cpprun(*meet, worker)
    reaper_of(running.pid)
    poll(lambda: catches(running.pid, number), what='its handler')
    running.send(number)
    resumable = number == signal.SIGTERM
    assert running.done(20) == (75 if resumable else 128 + number), running.output
    assert not (jobs.marks / 'started').exists()
    assert jobs.wait_until_gone() == []
    assert list(jobs.tmp.iterdir()) == [], 'an empty folder is worth nothing'


def catches(pid, number):
    with open(f'/proc/{pid}/status') as status:
        caught = next(line for line in status if line.startswith('SigCgt:'))
    return int(caught.split()[1], 16) >> (number - 1) & 1


@pytest.mark.parametrize('milliseconds', [0, 1, 2, 4, 8, 16])
def test_signal_at_any_moment_of_the_start(jobs, milliseconds):
    running = jobs.cpprun('--nproc-per-node=4', '--shutdown-timeout=2', jobs.sh('sleep 60'))
    end = time.monotonic() + milliseconds / 1000
    while time.monotonic() < end:
        pass
    running.send(signal.SIGTERM)
    assert running.done(10) in (75, 128 + signal.SIGTERM, -signal.SIGTERM), running.output
    assert jobs.wait_until_gone(1) == []


def test_a_closed_terminal_ends_the_job(jobs):
    """A closed terminal: SIGHUP to the foreground job, and output to nowhere."""
    main, other = os.openpty()
    worker = jobs.sh('trap "echo hup >$MARKS/hup$RANK; exit 0" HUP\n' + FOR_EVER)
    options = {'stdin': other, 'stdout': other, 'stderr': other, 'start_new_session': True}
    command = ('--nproc-per-node=2', worker)
    running = jobs.cpprun(*command, preexec_fn=own_terminal, **options)
    os.close(other)
    jobs.numbers(['up0', 'up1'])
    os.close(main)
    assert running.done(20) == 128 + signal.SIGHUP
    assert jobs.mark('hup0') == jobs.mark('hup1') == 'hup'
    assert jobs.wait_until_gone() == []


def test_ctrl_c_at_a_terminal_reaches_workers_once(jobs):
    """They have their own sessions, so only the launcher forwards it."""
    main, other = pty.openpty()
    worker = jobs.sh('trap "echo int >>$MARKS/int$RANK; exit 0" INT\n' + FOR_EVER)
    options = {'stdin': other, 'start_new_session': True, 'preexec_fn': own_terminal}
    running = jobs.cpprun('--nproc-per-node=2', worker, **options)
    os.close(other)
    jobs.numbers(['up0', 'up1'])
    os.write(main, b'\x03')
    assert running.done(20) == 128 + signal.SIGINT
    assert jobs.mark('int0') == jobs.mark('int1') == 'int'
    os.close(main)
    assert jobs.wait_until_gone() == []


# A shell with job control, whose user presses Ctrl-Z and types fg later.
FOREGROUND = """
"$@"
echo $? >"$MARKS/stopped"
until [ -e "$MARKS/go" ]; do sleep 0.05; done
fg
echo $? >"$MARKS/code"
"""


def test_ctrl_z_suspends_the_workers_until_fg(jobs):
    main, other = pty.openpty()
    code = UP + 'until [ -e "$MARKS/end" ]; do sleep 0.1; done'
    options = {'stdin': other, 'start_new_session': True, 'preexec_fn': own_terminal}
    wrap = ('bash', '--norc', '-ic', FOREGROUND, 'bash')
    jobs.cpprun('--nproc-per-node=2', '--hang-timeout=off', jobs.sh(code), wrap=wrap, **options)
    os.close(other)
    workers = jobs.numbers(['up0', 'up1'])
    kill(workers[1], signal.SIGSTOP)  # this one stays stopped
    poll(lambda: state_of(workers[1]) == 'T', 20, 'the stop of rank 1')
    os.write(main, b'\x1a')
    assert jobs.mark('stopped') == str(128 + signal.SIGTSTP)
    # A process that waits for a CPU stops when it gets one.
    poll(lambda: state_of(workers[0]) == 'T', 20, 'the stop of rank 0')
    (jobs.marks / 'end').touch()
    (jobs.marks / 'go').touch()
    poll(lambda: not is_alive(workers[0]), 20, 'the end of rank 0')
    assert state_of(workers[1]) == 'T'
    kill(workers[1], signal.SIGCONT)
    assert jobs.mark('code') == '0'
    os.close(main)
    assert jobs.wait_until_gone() == []


def test_in_the_background_of_a_shell(jobs):
    """`cpprun ... &` of a shell without job control ignores SIGINT; SIGTERM ends it."""
    shell = '"$@" & echo $! >"$MARKS/pid"; wait $!; echo "code $?"'
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(FOR_EVER), wrap=('sh', '-c', shell, 'sh'))
    jobs.numbers(['up0', 'up1'])
    os.kill(int(jobs.mark('pid')), signal.SIGTERM)
    running.done(20)
    assert running.out.endswith(f'code {128 + signal.SIGTERM}\n'), running.output
    assert jobs.wait_until_gone() == []


def test_sigterm_ends_a_job_under_nohup(jobs):
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(FOR_EVER), wrap=('nohup',))
    jobs.numbers(['up0', 'up1'])
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    assert jobs.wait_until_gone() == []


def nested(jobs, inner, flags=''):
    """A cpprun of one worker that is a cpprun of two; and a sibling of the outer's."""
    outer = jobs.sh(
        f'if [ "$RANK" = 1 ]; then RANK=sibling\n{FOR_EVER}\nfi\n'
        f'exec {BIN / "cpprun"} --nproc-per-node=2 {flags} "$INNER"'
    )
    running = jobs.cpprun('--nproc-per-node=2', outer, env={'INNER': str(jobs.sh(inner))})
    jobs.mark('upsibling')
    return running


def test_sigkill_of_an_outer_launcher_ends_the_inner_one(jobs):
    running = nested(jobs, 'setsid sleep 60 &\n' + FOR_EVER)
    jobs.numbers(['up0', 'up1'])
    running.process.kill()
    running.process.wait()
    assert jobs.wait_until_gone(1) == []


def test_restarts_of_an_inner_launcher_spare_the_outers_workers(jobs):
    inner = (
        'if [ "$TORCHELASTIC_RESTART_COUNT" -lt 3 ]; then setsid sleep 60 & exit 1; fi\n' + FOR_EVER
    )
    running = nested(jobs, inner, '--max-restarts=3')
    jobs.numbers(['up0', 'up1'])
    assert is_alive(int(jobs.mark('upsibling')))
    assert running.process.poll() is None
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    assert jobs.wait_until_gone(1) == []


def test_end_of_an_inner_launcher_spares_the_outer(jobs):
    running = nested(jobs, UP + 'exit 0')
    jobs.numbers(['up0', 'up1'])
    sibling = int(jobs.mark('upsibling'))
    left = 'outer, its reaper process, the sibling and its sleep'
    poll(lambda: len(jobs.alive()) <= 4, what=left)
    assert is_alive(sibling)
    kill(sibling, signal.SIGTERM)
    assert running.done(20) == 1
    assert jobs.wait_until_gone(1) == []
