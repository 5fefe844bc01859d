"""Debuggers in workers: pdb at the terminal of cpprun, and an editor that attaches through debugpy.
docs/how-to/debug-a-program.md shows the same.
"""

import json
import os
import pty
import select
import socket

from conftest import free_port, poll
from torch_python import PYTHON, needs_torch, training_env

SECONDS = 120  # for whatever a step imports, on a slow machine

ONE = """import os

breakpoint()
total = int(os.environ["RANK"]) + 41
print("total", total)
"""

FAILING = """import os

total = int(os.environ["RANK"]) + 41
raise ValueError("wrong")
"""

SEVERAL = """import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([41 + dist.get_rank()])
dist.breakpoint(rank=1)
dist.all_reduce(total)
print("sum", total.item(), flush=True)
dist.destroy_process_group()
"""

EDITOR = """import os

if os.environ["RANK"] == "1":
    import debugpy
    debugpy.listen({port})
    debugpy.wait_for_client()
    total = 42
    debugpy.breakpoint()
    total += 1
    print("total", total, flush=True)
"""


class Typed:
    """A job whose terminal a user types at."""

    def __init__(self, jobs, *args, **options):
        self.terminal, other = pty.openpty()
        streams = {'stdin': other, 'stdout': other, 'stderr': other}
        self.job = jobs.cpprun(*args, env=training_env(), **streams, **options)
        os.close(other)
        self.shown = ''

    def wait_for(self, text):
        """Reads to the first `text` that it has not shown yet."""

        def has_come():
            while text not in self.shown and select.select([self.terminal], [], [], 0)[0]:
                try:
                    self.shown += os.read(self.terminal, 65536).decode()
                except OSError:  # EIO: no writer is left
                    break
            return text in self.shown

        poll(has_come, SECONDS, lambda: f'{text} in {self.shown}')
        self.shown = self.shown.partition(text)[2]

    def type(self, line):
        """At the next prompt of pdb."""
        self.wait_for('(Pdb) ')
        os.write(self.terminal, f'{line}\n'.encode())


def test_breakpoint_of_one_worker(jobs):
    typed = Typed(jobs, '--nproc-per-node=1', jobs.write('train.py', ONE))
    typed.wait_for('-> total = int(os.environ["RANK"]) + 41')
    typed.type('next')
    typed.type('p total')
    typed.wait_for('41\r\n')
    typed.type('continue')
    typed.wait_for('total 41')
    assert typed.job.done() == 0


def test_pdb_where_a_script_fails(jobs):
    script = jobs.write('train.py', FAILING)
    typed = Typed(jobs, '--nproc-per-node=1', '-m', 'pdb', '-c', 'continue', script)
    typed.wait_for('ValueError: wrong')
    typed.type('p total')
    typed.wait_for('41\r\n')
    typed.type('quit')  # pdb begins the script again
    typed.type('quit')
    assert typed.job.done() == 0


@needs_torch
def test_breakpoint_of_one_rank_of_several(jobs):
    typed = Typed(jobs, '--nproc-per-node=2', jobs.write('train.py', SEVERAL))
    typed.wait_for('dist.breakpoint(rank=1)')
    typed.type('up')
    typed.type('p total')
    typed.wait_for('tensor([42])')
    typed.type('continue')
    typed.wait_for('sum 83')
    typed.wait_for('sum 83')
    assert typed.job.done() == 0


class Editor:
    """Speaks the Debug Adapter Protocol, as editors do."""

    def __init__(self, port):
        connected = poll(lambda: self._connect(port), SECONDS, 'debugpy listens')
        self.file = connected.makefile('rwb')
        self.number = 0

    @staticmethod
    def _connect(port):
        try:
            return socket.create_connection(('127.0.0.1', port), SECONDS)
        except ConnectionRefusedError:
            return None

    def request(self, command, **arguments):
        self.number += 1
        message = {'seq': self.number, 'type': 'request', 'command': command}
        body = json.dumps({**message, 'arguments': arguments}).encode()
        self.file.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)
        self.file.flush()

    def wait_for(self, name):
        """The body of the next event, or answer to a command, of that name."""
        while True:
            length = int(self.file.readline().split()[1])
            self.file.readline()
            message = json.loads(self.file.read(length))
            if name in (message.get('event'), message.get('command')):
                return message.get('body')


def test_an_editor_attaches_to_one_rank(jobs):
    port = free_port()
    script = jobs.write('train.py', EDITOR.format(port=port))
    job = jobs.cpprun('--nproc-per-node=2', script, env={'PYTHON_EXEC': PYTHON})
    editor = Editor(port)
    editor.request('initialize', adapterID='python', clientID='test')
    editor.wait_for('initialize')
    editor.request('attach', connect={'host': '127.0.0.1', 'port': port})
    editor.wait_for('initialized')
    editor.request('configurationDone')
    thread = editor.wait_for('stopped')['threadId']
    editor.request('stackTrace', threadId=thread)
    frame = editor.wait_for('stackTrace')['stackFrames'][0]
    editor.request('evaluate', expression='total', frameId=frame['id'])
    assert editor.wait_for('evaluate')['result'] == '42'
    editor.request('continue', threadId=thread)
    editor.wait_for('terminated')
    assert job.done() == 0, job.output
    assert 'total 43' in job.output
