"""docs/reference/console.md: what cpprun and cpprunctl print, recorded from real runs.

CPPRUN_UPDATE=1 writes the recordings into the page. Times, pids, ports, names of hosts and folders
differ between runs and have fixed values there.
"""

import os
import re
import socket
import subprocess
import sys
import uuid

import pytest
from launches import BIN, ROOT, free_port, poll
from terminal import Terminal

PAGE = ROOT / 'docs' / 'reference' / 'console.md'
BLOCK = re.compile(r'<!-- recording: ([\w-]+) -->\n```console\n(.*?)```', re.DOTALL)

TRAIN = """
import os, sys
if os.environ['RANK'] == '0':
    print('epoch 1: loss 0.42', flush=True)
"""
FAIL = """
import os, time
def load(index):
    if index == 17 and os.environ['RANK'] == '1':
        raise ValueError(f'bad batch at index {index}')
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':
    for index in range(20):
        load(index)
    time.sleep(600)
"""
WAIT = """
import os, time
with open('ready', 'a') as ready:
    print(os.environ['RANK'], file=ready)
try:
    time.sleep(600)
except KeyboardInterrupt:
    pass
"""

# What differs between runs, and what the page has in its place.
FIXED = [
    (r'\x1b\[[0-9;]*m', ''),
    (r'\d+\.\d s after start \([\d:.]+\)', '0.3 s after start (09:41:07.302)'),
    (r'\bpid:? \d+', lambda m: m[0].rstrip('0123456789') + '4711'),
    (r'PID \d+', 'PID 4711'),
    (r'time      : [\d-]+_[\d:]+', 'time      : 2026-11-27_09:41:07'),
    (r'\S*torchelastic_\w+/([\w.-]+?)_\w{8}', r'/tmp/torchelastic_k2x0/\1_4f7ad0c1'),
    (r'\d:\d\d of 10:00', '0:02 of 10:00'),
    (r'digits_\w{8}\b', 'digits_4f7ad0c1'),
    (r'(http://|coordinator )127.0.0.1:\d+', r'\g<1>127.0.0.1:29400'),
    (r'ran\s+[\d.]+\s+%\s+of\s+[\d.]+\s+s\b', 'ran 98.2 % of 12.4 s'),
    (r'[\d.]+ MiB', '13.2 MiB'),
    (r', up [\d.:]+( ms| s)?', ', up 4.0 s'),
    (r'^(\d +n01 +)\d+ *', r'\g<1>4711  '),
    (r'(\d/\d +)[\d.:]+( ms| s)? +', r'\g<1>4.0 s  '),
]


class Job:
    """Commands in one folder, and what they print."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.name = f'd{uuid.uuid4().hex[:5]}'  # as long as the one in the page
        self.running = []
        for name, text in (('train.py', TRAIN), ('fails.py', FAIL), ('waits.py', WAIT),
                           ('misspelt.py', 'import torch_geometricc\n')):
            (folder / name).write_text(text)
        bin_folder = folder / 'bin'
        bin_folder.mkdir()
        (bin_folder / 'python3').symlink_to(sys.executable)
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_', 'LOG'))},
            'PATH': f'{bin_folder}:{BIN}:/usr/bin:/bin', 'OMP_NUM_THREADS': '1',
            'TMPDIR': str(folder), 'TERM': 'xterm', 'PYTHON_EXEC': 'python3',
        }

    def pipe(self, line):
        """The output of a command whose stdout and stderr are pipes."""
        done = subprocess.run(self.words(line), cwd=self.folder, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        return f'$ {line}\n{self.fixed(done.stdout)}'

    def start(self, line):
        """A command on a terminal of its own."""
        self.running.append(Terminal(self.words(line), 100, cwd=self.folder, env=self.env))
        return self.running[-1]

    def terminal(self, line, until=None):
        """The output of a command on a terminal, until it ends or has shown a text."""
        screen = self.start(line)
        if until:
            screen.wait_for(until)
        else:
            screen.done()
        return self.shown(line, screen)

    def wait_for_workers(self, count):
        """Until so many workers of waits.py have begun, in all rounds together."""
        ready = self.folder / 'ready'
        poll(lambda: ready.exists() and len(ready.read_text().split()) >= count, 60, 'workers')

    def shown(self, line, screen):
        return f'$ {line}\n{self.fixed(text_on(screen))}'

    def words(self, line):
        return line.replace(':29400', f':{self.port}').replace('digits', self.name).split()

    def fixed(self, text):
        text = text.replace(f':{self.port}', ':29400').replace(str(BIN), '/usr/bin')
        text = text.replace(str(self.folder), '/scratch/train').replace(self.name, 'digits')
        text = re.sub(rf'\b{re.escape(socket.gethostname())}\b', 'n01', text)
        for pattern, instead in FIXED:
            text = re.sub(pattern, instead, text, flags=re.MULTILINE)
        text = re.sub(r' +$', '', text, flags=re.MULTILINE).strip('\n')
        return text + '\n' if text else ''

    def close(self):
        for screen in self.running:
            screen.close()


def text_on(screen):
    """The lines that stay on the screen: a line that begins anew replaces what it had."""
    shown = re.sub(r'\x1b\[[0-9;]*m', '', screen.read().decode())
    lines = shown.replace('\r\n', '\n').split('\n')
    return '\n'.join(re.split(r'\r(?:\x1b\[K)?', line)[-1] for line in lines)


@pytest.fixture
def job(tmp_path):
    if not (BIN / 'cpprun').exists():
        pytest.skip('cpprun is not built')
    made = Job(tmp_path)
    yield made
    made.close()


ELASTIC = '--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29400 --rdzv-id=digits'


def lost_node(job):
    line = f'cpprun --nnodes=1:2 {ELASTIC} waits.py'
    first = job.start(line)
    first.wait_for(b'dashboard')
    second = job.start(line)
    job.wait_for_workers(2)
    second.process.kill()
    first.wait_for(b'uses up no restart')
    return job.shown(line, first)


def operator(job):
    line = 'cpprun --job-name=digits --nproc_per_node=2 waits.py'
    screen = job.start(line)
    job.wait_for_workers(2)
    asked = job.pipe('cpprunctl restart digits')
    job.wait_for_workers(4)
    stopped = job.pipe('cpprunctl stop digits')
    screen.done()
    return job.shown(line, screen) + asked + stopped


def running(job):
    job.start('cpprun --job-name=digits --nproc_per_node=2 waits.py')
    job.wait_for_workers(2)
    table = job.pipe('cpprunctl ps').splitlines(keepends=True)
    # Other tests run jobs meanwhile, and one of those may be called digits.
    own = [line for line in table[2:] if line.startswith('digits ') and 'waits.py' in line]
    return ''.join(table[:2] + own) + job.pipe('cpprunctl status digits')


def used_port(job):
    with socket.socket() as other:
        other.bind(('127.0.0.1', job.port))
        other.listen()
        return job.pipe(f'cpprun --nnodes=2 {ELASTIC} --rdzv-conf=join_timeout=3 train.py')


RECORDINGS = {
    'start': lambda job: job.terminal('cpprun --job-name=digits --nproc_per_node=2 train.py'),
    'pipe': lambda job: job.pipe('cpprun --job-name=digits --nproc_per_node=2 train.py'),
    'waiting': lambda job: job.terminal(f'cpprun --nnodes=2 {ELASTIC} train.py', b'of 10:00'),
    'alone': lambda job: job.terminal(
        f'cpprun --nnodes=2 {ELASTIC} --rdzv-conf=join_timeout=3 train.py'),
    'failure': lambda job: job.terminal(
        'cpprun --job-name=digits --nproc_per_node=2 --log-dir=logs fails.py'),
    'failure-pipe': lambda job: job.pipe(
        'cpprun --job-name=digits --nproc_per_node=2 --log-dir=logs fails.py'),
    'restart': lambda job: job.terminal(
        'cpprun --job-name=digits --nproc_per_node=2 --max-restarts=1 fails.py'),
    'missing-module': lambda job: job.pipe('cpprun --failure-format=summary misspelt.py'),
    'lost-node': lost_node,
    'operator': operator,
    'running': running,
    'used-port': used_port,
    'words': lambda job: ''.join(map(job.pipe, (
        f'cpprun {ELASTIC.replace("29400", "99999")} train.py',
        'cpprun --max-restarts=many train.py',
        'cpprun trian.py',
        'cpprunctl describe',
    ))),
    'explain': lambda job: job.pipe(
        'cpprunctl explain --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d '
        '--rdzv-endpoint=node0:29400 train.py --epochs 3'),
}  # fmt: skip


def blocks():
    return dict(BLOCK.findall(PAGE.read_text()))


def plain(text):
    """Without line ends: where a line breaks depends on the length of names and paths."""
    return ' '.join(text.split())


def test_page_has_all_recordings():
    assert list(blocks()) == list(RECORDINGS)


@pytest.mark.parametrize('name', RECORDINGS)
def test_the_page_has_what_the_programs_print(job, name):
    shown = RECORDINGS[name](job)
    if 'CPPRUN_UPDATE' in os.environ:
        instead = f'<!-- recording: {name} -->\n```console\n{shown}```'
        text = PAGE.read_text()
        PAGE.write_text(BLOCK.sub(lambda m: instead if m[1] == name else m[0], text))
    assert plain(shown) == plain(blocks()[name]), 'CPPRUN_UPDATE=1 records the page anew'


def test_errors_fit_a_terminal(job):
    line = f'cpprun --nnodes=2 {ELASTIC} --rdzv-conf=join_timeout=3 train.py'
    lines = job.terminal(line).splitlines()
    error = next(i for i, shown in enumerate(lines) if shown.startswith('error: '))
    assert lines[error + 1].startswith('       ')
    assert all(len(shown) <= 100 for shown in lines[error:])


@pytest.mark.parametrize('line', [
    'cpprun --job-name=digits --nproc_per_node=2 --max-restarts=1 fails.py',
    'cpprunctl explain --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=node0:29400 train.py',
    'cpprunctl doctor -v',
])  # fmt: skip
def test_lines_fit_a_terminal(job, line):
    screen = job.start(line)
    screen.done()
    lines = text_on(screen).splitlines()
    own = [shown for shown in lines if not shown.startswith('  File "')]
    assert [shown for shown in own if len(shown) > 100 and len(shown.split()) > 1] == []
    assert len(own) > 4
