"""Under a real terminal (tmux): workers' progress bars and window size, cpprunctl top, and
completion by the shells themselves."""

import re
import shutil
import subprocess
import uuid

import pytest
from conftest import BIN, PYTHON, poll

TMUX = shutil.which('tmux')


@pytest.fixture
def screen(jobs):
    """Starts a command in a terminal of 100 by 30; returns it."""
    if TMUX is None:
        pytest.skip('no tmux')
    made = []

    def start(*command, env=None):
        made.append(Screen([str(word) for word in command], jobs, env))
        return made[-1]

    yield start
    for one in made:
        one.tmux('kill-server', check=False)


class Screen:
    """A terminal that runs one command."""

    def __init__(self, command, jobs, env):
        self.name = f'cpprun-test-{uuid.uuid4().hex[:12]}'
        self.env = {**jobs.env(env), 'TERM': 'xterm-256color'}
        self.tmux('new-session', '-d', '-x', '100', '-y', '30', '-c', jobs.folder, *command)

    def tmux(self, *args, check=True):
        command = [TMUX, '-L', self.name, '-f', '/dev/null', *map(str, args)]
        done = subprocess.run(
            command, env=self.env, check=check, capture_output=True, text=True, timeout=30
        )
        return done.stdout

    def text(self):
        return self.tmux('capture-pane', '-p', check=False)

    def type(self, *keys):
        self.tmux('send-keys', *keys)

    def wait_for(self, pattern, seconds=30):
        return poll(lambda: re.search(pattern, self.text(), re.M), seconds,
                    lambda: f'{pattern!r} on:\n{self.text()}')


# ---------------------------------------------------------------- the launcher

BAR = """
import os, signal, sys, time
rank = os.environ['RANK']
def size(*_):
    print(f'rank {rank} sees {os.get_terminal_size().columns} columns')
signal.signal(signal.SIGWINCH, size)
assert sys.stdout.isatty() and sys.stderr.isatty()
size()
if rank == '0':
    while not os.path.exists(os.environ['MARKS'] + '/begin'):
        time.sleep(0.02)
    for i in range(101):
        print(f'\\rrank {rank}: {i} %', end='', flush=True)
        time.sleep(0.002)
    print()
while not os.path.exists(os.environ['MARKS'] + '/end'):
    time.sleep(0.02)
print('\\x1b[1mbye\\x1b[0m of rank', rank)
time.sleep(120)
"""


def test_workers_have_the_users_terminal(screen, jobs):
    script = jobs.script(BAR, f'{PYTHON} -ISu')
    here = screen(BIN / 'cpprun', '--standalone', '--nproc-per-node=2', '--no-python', script)
    for rank in (0, 1):
        here.wait_for(rf'rank {rank} sees 100 columns')
    (jobs.marks / 'begin').touch()
    here.wait_for(r'rank 0: 100 %')
    # The bar overwrites itself: its earlier states are on no other line.
    assert re.findall(r'rank \d: (\d+) %', here.text()) == ['100']
    here.tmux('resize-window', '-x', '80', '-y', '30')
    for rank in (0, 1):
        here.wait_for(rf'rank {rank} sees 80 columns')
    (jobs.marks / 'end').touch()
    here.wait_for(r'bye of rank 0')
    here.wait_for(r'bye of rank 1')
    here.type('C-c')
    poll(lambda: not jobs.alive() or here.text() == '', 30, 'the end by Ctrl-C')


def test_top_is_a_screen_that_a_key_ends(screen, jobs):
    run_id = f'top-{uuid.uuid4().hex[:8]}'
    args = ('--nnodes=1', '--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0')
    jobs.cpprun(*args, f'--rdzv-id={run_id}', '--nproc-per-node=2', '--no-python',
                jobs.sh('echo $$ >"$MARKS/up$RANK"; exec sleep 120'))
    pids = jobs.numbers(['up0', 'up1'])
    here = screen('sh', '-c', f'"{BIN / "cpprunctl"}" top {run_id}; echo left; exec sleep 60')
    for pid in pids:
        here.wait_for(rf'^\d .*\b{pid}\b')
    assert here.text().count(f'job {run_id}') == 1, 'one screen, drawn anew'
    here.type('q')
    here.wait_for(r'^left')


# ---------------------------------------------------------------- completion


def shell_or_skip(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f'no {name}')
    return path


@pytest.fixture
def scripts(jobs):
    """A folder with the completion scripts of both programs, by shell."""
    def write(shell):
        folder = jobs.folder / shell
        folder.mkdir()
        asked = {'_cpprunctl': (BIN / 'cpprunctl', 'completion', shell)}
        if shell != 'fish':
            asked['_cpprun'] = (BIN / 'cpprun', '--print-completion', shell)
        if shell == 'tcsh':
            del asked['_cpprunctl']
        for name, command in asked.items():
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
            (folder / name).write_text(done.stdout)
        return folder

    return write


def test_zsh_completes(screen, scripts):
    zsh = shell_or_skip('zsh')
    folder = scripts('zsh')
    here = screen(zsh, '-f', '-i')
    here.type(f'PS1="> "; fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; '
              f'source {folder}/_cpprunctl; PATH={BIN}:$PATH; clear', 'Enter')
    here.wait_for(r'\A> ?$')
    here.type('cpprun --nproc-per-n', 'Tab')
    here.wait_for(r'^> cpprun --nproc-per-node=')
    here.type('C-u', 'cpprun --hang', 'Tab')
    here.wait_for(r'^> cpprun --hang-timeout=')
    here.type('C-u', 'cpprunctl snapsh', 'Tab', 'pru', 'Tab')
    here.wait_for(r'^> cpprunctl snapshot prune')


def test_tcsh_completes(screen, scripts):
    tcsh = shell_or_skip('tcsh')
    folder = scripts('tcsh')
    here = screen(tcsh, '-f')
    here.type(f'set prompt = "> "; source {folder}/_cpprun; clear', 'Enter')
    here.wait_for(r'\A> ?$')
    here.type('cpprun --nproc-per-n', 'Tab')
    here.wait_for(r'^> cpprun --nproc-per-node')


def test_fish_completes(scripts):
    fish = shell_or_skip('fish')
    folder = scripts('fish')

    def complete(line):
        command = [fish, '--no-config', '-c', f'source {folder}/_cpprunctl; complete -C "{line}"']
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ''
        return [one.split('\t')[0] for one in done.stdout.splitlines()]

    assert 'status' in complete('cpprunctl st')
    assert 'ls' in complete('cpprunctl snapshot l')
    assert '--follow' in complete('cpprunctl events --f')
