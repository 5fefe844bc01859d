"""Workers that SIGKILL does not end: held by a tracer where they exit, or inside the kernel by a
file server that does not answer. No node waits for them, and no worker starts beside them."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import (
    as_another_user,
    free_port,
    has_own_mounts,
    poll,
    state_of,
    without_cgroups,
)
from launches import ROOT
from mounted_files import why_not
from process_info import children_of, is_reaper, reaper_of
from test_hangs_files import mounted

UNUSABLE = 69
UP = 'echo $$ >"$MARKS/new$RANK"; mv "$MARKS/new$RANK" "$MARKS/up$RANK"\necho x >>"$MARKS/starts"\n'
FOR_EVER = UP + 'while :; do sleep 0.1; done'
FORGET_S = 20  # a tracer's or a file server's end is noticed within it


class Tracer:
    """Holds a process at its exit until it ends itself."""

    def __init__(self, pid):
        script = ROOT / 'tests/support/exit_tracer.py'
        pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, script, str(pid)], text=True, **pipes)
        self.pid = self.process.pid
        if self.state() != 'seized':
            pytest.skip(f'no process can be traced here: {self.process.stderr.read()}')

    def state(self):
        return self.process.stdout.readline().strip()

    def let_go(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def held():
    """A function that holds a process at its exit until the test ends."""
    tracers = []

    def hold(pid):
        tracers.append(Tracer(pid))
        return tracers[-1]

    yield hold
    for tracer in tracers:
        tracer.let_go()


def lines_of(running, pid):
    return re.findall(rf'^.*\(pid {pid}\) has not ended .*$', running.err, re.MULTILINE)


def expect_unusable(running, pid, rank, seconds=60):
    """One line for the process, and the exit code of a node that cannot be used."""
    assert running.done(seconds) == UNUSABLE, running.output
    (line,) = lines_of(running, pid)
    name = rf'rank {rank} \(pid {pid}\)'
    assert re.search(rf'{name} has not ended \d+\.\d s after SIGKILL: state ', line)
    assert f'this node is unusable: SIGKILL did not end rank {rank} (pid {pid})' in running.err
    return line


def test_worker_held_by_a_tracer(jobs, held):
    running = jobs.cpprun('--nproc-per-node=2', '--shutdown-timeout=1', jobs.sh(FOR_EVER))
    _, pid = jobs.numbers(['up0', 'up1'])
    tracer = held(pid)
    running.send(signal.SIGTERM)
    line = expect_unusable(running, pid, 1)
    assert f'state t (tracing stop), held by the tracer with pid {tracer.pid}, wait' in line
    assert 'wait channel ' in line
    assert 'kernel stack ' in line
    tracer.let_go()
    poll(lambda: state_of(pid) == '', FORGET_S, 'its late end')


def test_no_worker_is_started_beside_it(jobs, held):
    code = UP + 'while [ "$RANK" = 1 ] || [ ! -e "$MARKS/fail" ]; do sleep 0.1; done; exit 3'
    args = ('--nproc-per-node=2', '--max-restarts=3', '--shutdown-timeout=1')
    running = jobs.cpprun(*args, jobs.sh(code))
    _, pid = jobs.numbers(['up0', 'up1'])
    held(pid)
    (jobs.marks / 'fail').touch()
    expect_unusable(running, pid, 1)
    assert jobs.mark('starts').count('x') == 2
    assert 'exited with code 3' in running.err, 'the failure is reported as well'


def test_second_signal_does_not_wait(jobs, held):
    args = ('--nproc-per-node=1', '--shutdown-timeout=600')
    running = jobs.cpprun(*args, jobs.sh('trap "echo got" INT\ntrap "" TERM\n' + FOR_EVER))
    (pid,) = jobs.numbers(['up0'])
    held(pid)
    running.send(signal.SIGINT)
    running.wait_for_all('^got', 1)  # two equal pending signals are merged into one
    running.send(signal.SIGINT)
    expect_unusable(running, pid, 0)


def test_orphan_of_a_worker(jobs, held):
    """It ignores SIGTERM, and a tracer holds it."""
    code = (
        'sh -c \'trap "" TERM; echo $$ >"$MARKS/kid"; while :; do sleep 0.1; done\' &\n'
        'while [ ! -e "$MARKS/go" ]; do sleep 0.1; done'
    )
    running = jobs.cpprun('--nproc-per-node=1', jobs.sh(code))
    (kid,) = jobs.numbers(['kid'])
    held(kid)
    (jobs.marks / 'go').touch()
    assert running.done(60) == UNUSABLE, running.output
    assert re.search(rf'process {kid}, left behind by local rank 0 has not ended', running.err)


def meet(port):
    return ('--nnodes=1:2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{port}',
            '--nproc-per-node=1', '--max-restarts=0', '--shutdown-timeout=1')


ROUNDS = 'echo $$ >"$MARKS/up$NODE.$CPPRUN_ROUND.$TORCHELASTIC_RESTART_COUNT.$WORLD_SIZE"\n'


@pytest.mark.parametrize('is_host_unusable', [False, True], ids=['guest', 'host'])
def test_others_continue_without_its_node(jobs, held, is_host_unusable):
    args = (*meet(free_port()), jobs.sh(ROUNDS + 'while :; do sleep 0.1; done'))
    host = jobs.cpprun(*args, env={'NODE': 'host'})
    jobs.mark('uphost.1.0.1')
    guest = jobs.cpprun(*args, env={'NODE': 'guest'})
    pids = jobs.numbers(['uphost.2.0.2', 'upguest.2.0.2'], 60)
    left, stays, pid = (host, guest, pids[0]) if is_host_unusable else (guest, host, pids[1])
    held(pid)
    left.send(signal.SIGINT)
    assert left.done(60) == UNUSABLE, left.output
    name = 'guest' if is_host_unusable else 'host'
    jobs.mark(f'up{name}.3.0.1', 60)
    stays.send(signal.SIGTERM)
    assert stays.done(60) == 128 + signal.SIGTERM, stays.output


def test_job_ends_without_a_spare(jobs, held):
    args = [arg if arg != '--nnodes=1:2' else '--nnodes=2' for arg in meet(free_port())]
    args.append(jobs.sh(ROUNDS + 'while :; do sleep 0.1; done'))
    host = jobs.cpprun(*args, env={'NODE': 'host'})
    guest = jobs.cpprun(*args, env={'NODE': 'guest'})
    _, pid = jobs.numbers(['uphost.1.0.2', 'upguest.1.0.2'], 60)
    held(pid)
    guest.send(signal.SIGINT)
    assert guest.done(60) == UNUSABLE, guest.output
    assert host.done(60) == 1, host.output
    why = rf'it is unusable: SIGKILL did not end rank \d \(pid {pid}\)'
    assert re.search(rf'left \({why}\), and 1 of at least 2 nodes joined', host.err), host.err


def test_sigkill_of_the_launcher(jobs, held):
    running = jobs.cpprun('--nproc-per-node=1', jobs.sh(FOR_EVER))
    (pid,) = jobs.numbers(['up0'])
    held(pid)
    reaper = reaper_of(running.pid)
    running.process.kill()
    running.process.wait()
    poll(lambda: state_of(reaper) == '', FORGET_S, 'the end of the reaper process')


# ---------------------------------------------------------------- inside the kernel

@pytest.fixture
def sink(tmp_path):
    """A file that can be read, and whose writes never return."""
    if why := why_not():
        pytest.skip(why)
    with mounted(tmp_path / 'mounted') as folder:
        yield folder / 'sink'


def test_write_that_never_returns(jobs, sink):
    code = f"""
import os
file = os.open({str(sink)!r}, os.O_WRONLY)
open(os.environ['MARKS'] + '/pid', 'w').write(str(os.getpid()))
os.write(file, b'x')
"""
    running = jobs.cpprun('--nproc-per-node=1', '--shutdown-timeout=1', jobs.py(code))
    (pid,) = jobs.numbers(['pid'])
    running.send(signal.SIGINT)
    line = expect_unusable(running, pid, 0)
    assert 'state D (disk sleep), wait channel ' in line
    assert 'bring that back, or restart the node' in line
    if os.geteuid() == 0 and os.access('/proc/self/stack', os.R_OK):
        assert re.search(r'kernel stack \w+ < \w+', line)


# Maps another page over a dirty one of `sink`: the kernel writes it while it holds the lock of the
# process's memory, which reading /proc/PID/environ takes as well.
LOCKED = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
READ_WRITE, SHARED, PRIVATE, FIXED, ANONYMOUS = 3, 1, 2, 0x10, 0x20
file = os.open(SINK, os.O_RDWR)
page = libc.mmap(None, 4096, READ_WRITE, SHARED, file, 0)
ctypes.memset(page, 1, 1)
open(os.environ['MARKS'] + '/pid', 'w').write(str(os.getpid()))
libc.mmap(page, 4096, READ_WRITE, PRIVATE | FIXED | ANONYMOUS, -1, 0)
"""


def test_reaper_process_does_not_wait_for_the_memory_lock(jobs, sink):
    """It also reads the later processes in /proc."""
    code = f"""
import os, subprocess, time
if os.environ['RANK'] == '0':
    SINK = {str(sink)!r}
{''.join(f'    {line}' + chr(10) for line in LOCKED.splitlines())}
while not os.path.exists(os.environ['MARKS'] + '/pid'):
    time.sleep(0.01)
left = subprocess.Popen(['sleep', '600'], start_new_session=True)
open(os.environ['MARKS'] + '/left', 'w').write(str(left.pid))
time.sleep(600)
"""
    hidden = without_cgroups() if has_own_mounts() else ()
    running = jobs.cpprun('--nproc-per-node=2', jobs.py(code), wrap=hidden)
    pid, left = jobs.numbers(['pid', 'left'])
    poll(lambda: state_of(pid) == 'D', FORGET_S, 'its wait')
    (reaper,) = (child for child in children_of(running.pid) if is_reaper(child))
    running.process.kill()
    running.process.wait()
    poll(lambda: state_of(reaper) == '', FORGET_S, 'the end of the reaper process')
    assert state_of(left) in ('', 'Z'), 'the scan of /proc continued behind the one that blocks'


def test_a_worker_that_becomes_another_users_is_named(jobs):
    """As `sudo` in a script: the agent may not signal it."""
    wrap = as_another_user(jobs)
    as_root = jobs.folder / 'as-root'
    shutil.copy(shutil.which('setpriv'), as_root)
    as_root.chmod(0o4755)
    worker = jobs.sh(f'exec {as_root} --reuid=0 --regid=0 --clear-groups {jobs.sh(FOR_EVER)}')
    running = jobs.cpprun('--shutdown-timeout=1', worker, wrap=wrap)
    pid = int(jobs.mark('up0'))
    jobs.watch(pid)
    if os.stat(f'/proc/{pid}').st_uid != 0:
        pytest.skip('programs may not change their user here')
    running.send(signal.SIGTERM)
    assert running.done(60) == UNUSABLE, running.output
    (line,) = lines_of(running, pid)
    assert 'cpprun, which runs as user 65534, may not signal it (EPERM)' in line
    assert 'it has become user 0 (sudo, setuid)' in line
