"""Workers get a terminal if cpprun's own stdout and stderr are one."""

import re
import shutil
import signal
import subprocess

import pytest
from conftest import BIN, free_port, poll
from terminal import Terminal, set_size

SHOW = """
import os, signal, sys, time
def show(text):
    os.write(1, (text + '\\n').encode())
"""


@pytest.fixture
def screen(jobs):
    opened = []

    def start(*args, mode=('--standalone',), **options):
        command = [str(arg) for arg in (BIN / 'cpprun', *mode, *args)]
        opened.append(Terminal(command, env={**jobs.env(), 'TERM': 'xterm'}, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def two(jobs, code, *flags):
    return ('--nproc-per-node=2', *flags, *jobs.py(SHOW + code))


def test_workers_see_a_terminal_of_its_size(jobs, screen):
    code = 'show(f"{os.isatty(1)} {os.isatty(2)} {os.get_terminal_size(1)}")'
    job = screen(*two(jobs, code))
    assert job.done() == 0
    assert job.shown.count(b'True True os.terminal_size(columns=111, lines=33)\r\n') == 2


def test_logs_have_the_bytes_as_written(jobs, screen):
    logs = jobs.folder / 'logs'
    job = screen(*two(jobs, 'show("one"); show("two")', '--tee=1', f'--log-dir={logs}'))
    assert job.done() == 0
    for path in logs.glob('*/attempt_0/*/stdout.log'):
        assert path.read_bytes() == b'one\ntwo\n'
    assert b'[default1]:two\r\n' in job.shown


def test_each_stream_separately(jobs, screen):
    with open(jobs.folder / 'err', 'wb') as errors:
        job = screen(*two(jobs, 'show(f"{os.isatty(1)} {os.isatty(2)}")'), stderr=errors)
        assert job.done() == 0
    assert job.shown.count(b'True False') == 2


def test_resize_reaches_the_workers(jobs, screen):
    code = """
def on_resize(*_):
    show(f'now {os.get_terminal_size(1)}')
    sys.exit(0)
signal.signal(signal.SIGWINCH, on_resize)
show('ready')
time.sleep(60)
"""
    job = screen(*two(jobs, code))
    poll(lambda: job.read().count(b'ready') == 2, 60, lambda: job.shown)
    set_size(job.terminal, 44, 99)
    job.process.send_signal(signal.SIGWINCH)
    assert job.done() == 0
    assert job.shown.count(b'now os.terminal_size(columns=99, lines=44)') == 2


def test_progress_bar_is_live(jobs, screen):
    code = """
if os.environ['RANK'] == '1':
    sys.exit(0)
for percent in range(0, 101, 50):
    os.write(1, f'\\r {percent}%'.encode())
while not os.path.exists(os.environ['MARKS'] + '/seen'):
    time.sleep(0.01)
show('')
"""
    job = screen(*two(jobs, code))
    job.wait_for(b'\r 0%\r 50%\r 100%')
    (jobs.marks / 'seen').touch()
    assert job.done() == 0


def test_progress_bars_of_all_ranks_take_one_line(jobs, screen):
    code = """
rank = os.environ['RANK']
for percent in range(0, 101, 5):
    os.write(1, f'\\r rank {rank} {percent}%'.encode())
    time.sleep(0.03 if rank == '0' else 0.2)  # without and with time to show each state by itself
while not os.path.exists(os.environ['MARKS'] + '/seen'):
    time.sleep(0.01)
show('')
"""
    job = screen('-q', *two(jobs, code))
    job.wait_for(b' rank 0 100%')
    job.wait_for(b' rank 1 100%')
    bars = job.shown[job.shown.index(b'\r rank '):]
    assert b'\n' not in bars and b'\r\x1b[K' in bars, bars  # each takes the place of the other
    (jobs.marks / 'seen').touch()
    assert job.done() == 0


def test_progress_bars_keep_the_prefix_of_tee(jobs, screen):
    code = """
for percent in (0, 50, 100):
    os.write(1, f'\\r {percent}%'.encode())
    time.sleep(0.3)
show('')
"""
    job = screen('--tee=3', *two(jobs, code))
    assert job.done() == 0
    for rank in range(2):
        for percent in (0, 50, 100):
            assert f'[default{rank}]: {percent}%'.encode() in job.shown, job.shown


@pytest.mark.parametrize('workers', [1, 2])
def test_messages_begin_a_line_of_their_own(jobs, screen, workers):
    code = "os.write(2, b'\\r 10%\\r 20%'); time.sleep(0.5); sys.exit(3)"
    job = screen(f'--nproc-per-node={workers}', *jobs.py(SHOW + code))
    assert job.done() == 1
    assert re.search(rb'20%\r\n(\x1b\[[0-9;]*m)*(error|cpprun|warning):', job.shown), job.shown


def test_output_of_a_lone_worker_is_shown_immediately_and_in_order(jobs, screen):
    """Its stdout and stderr are one terminal, whose last lines the failure summary has."""
    code = """
print(os.path.samestat(os.fstat(1), os.fstat(2)), os.get_terminal_size(2).columns, flush=True)
for i in range(100): os.write(1 + i % 2, f'{i}, '.encode())
os.write(2, b'prompt> ')
while not os.path.exists(os.environ['MARKS'] + '/seen'):
    time.sleep(0.01)
sys.exit('\\nModuleNotFoundError: x')
"""
    job = screen(*jobs.py(SHOW + code))
    job.wait_for(b'True 111\r\n' + ''.join(f'{i}, ' for i in range(100)).encode() + b'prompt> ')
    (jobs.marks / 'seen').touch()
    assert job.done() == 1
    assert b'[missing_module]' in job.shown


def test_all_output_is_read_before_the_end(jobs, screen):
    job = screen(*two(jobs, 'os.write(1, b"x" * 79 + b"\\n") and [show("y" * 79)] * 1; '
                            '[show("z" * 79) for _ in range(2000)]'))
    assert job.done() == 0
    assert job.shown.count(b'z' * 79 + b'\r\n') == 4000


def test_start_line_names_job_logs_and_dashboard(jobs, screen):
    job = screen('--job-name=named', f'--log-dir={jobs.folder}/logs', jobs.sh('exit 0'))
    assert job.done() == 0
    start = rb'cpprun:\x1b\[0m job named, 1 worker, logs \S+/named_\w+, dashboard http://127.0.0.1:\d+/'
    shown = b' '.join(job.shown.split())  # where the line breaks depends on the path
    assert re.search(start, shown), job.shown


def test_quiet_prints_no_start_line(jobs, screen):
    job = screen('-q', jobs.sh('exit 0'))
    assert job.done() == 0
    assert b'cpprun' not in job.shown


def test_wait_for_nodes_counts_in_place(jobs, screen):
    mode = ('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}',
            '--job-name=two')
    worker = jobs.sh('exit 0')
    first = screen(worker, mode=mode)
    first.wait_for(b'on the other nodes: cpprun --nnodes=2 --rdzv-backend=c10d')
    first.wait_for(b'\r\x1b[Kcpprun: waiting: 1 of at least 2 nodes joined: ')
    second = jobs.cpprun(*mode, worker)
    assert first.done() == 0
    assert second.done(60) == 0, second.output
    assert first.shown.endswith(b'\r\x1b[K'), 'the line is gone'
    assert 'cpprun: ' not in second.output, 'a good run in a pipe prints nothing'


def test_after_ctrl_c_it_prints_what_it_waits_for(jobs, screen):
    """A worker that ignores the signal has until --shutdown-timeout."""
    job = screen('--shutdown-timeout=900', *jobs.py(
        'import os, signal, time\n'
        'signal.signal(signal.SIGINT, signal.SIG_IGN)\n'
        'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
        "os.write(1, b'ready\\n')\n"
        'time.sleep(3600)\n'))
    job.wait_for(b'ready')
    job.process.send_signal(signal.SIGINT)
    note = b'kills them 900.0 s after the signal, or at once if you press Ctrl-C again'
    poll(lambda: note in b' '.join(job.read().split()), 60, lambda: f'{note} in {job.shown}')
    job.process.send_signal(signal.SIGINT)
    assert job.done() == 128 + signal.SIGINT


def test_failure_on_a_terminal_has_colours_and_one_block(jobs, screen):
    job = screen(jobs.sh('exit 3'))
    assert job.done() == 1
    assert b'\x1b[1;31merror:\x1b[0m ' in job.shown
    assert b'ChildFailedError' not in job.shown
    plain = screen('--color=never', jobs.sh('exit 3'))
    assert plain.done() == 1
    assert b'\x1b' not in plain.shown and b'error: ' in plain.shown


@pytest.mark.skipif(not shutil.which('tmux'), reason='tmux is not installed')
def test_workers_have_the_terminal_of_tmux(jobs):
    (program, script) = jobs.py(SHOW + 'show(f"{os.isatty(1)} {os.get_terminal_size(1).columns}")')
    socket = jobs.folder / 'tmux'
    out = jobs.marks / 'done'
    args = f'--standalone --nproc-per-node=2 {program} {script}'
    command = f'{BIN}/cpprun {args}; echo $? >{out}; cat'
    tmux = ['tmux', '-S', str(socket), '-f', '/dev/null']
    subprocess.run(
        [*tmux, 'new-session', '-d', '-x', '90', '-y', '20', command], env=jobs.env(), check=True,
        timeout=60,
    )
    try:
        assert jobs.mark('done', 60) == '0'
        shown = poll(lambda: captured(tmux), 30, 'the screen')
        assert shown.count('True 90') == 2
    finally:
        subprocess.run([*tmux, 'kill-server'], check=False, timeout=60)


def captured(tmux):
    shown = subprocess.run(
        [*tmux, 'capture-pane', '-p'], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return shown if shown.count('True') == 2 else None
