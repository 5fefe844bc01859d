"""Starts launchers for tests, with a deadline for every wait; ends all their processes.

CPPRUN_BIN is the folder with cpprun and cpprunctl (default build/check/bin); Python workers run in
the project's .venv.
"""

import itertools
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin')).resolve()

# Timeouts are written for a quiet machine and hold on one that is ten times slower: they
# bound a hang; no test passes because of one.
SLOWEST = 10


def poll(condition, seconds=20, what='the condition'):
    """The value of `condition` as soon as it is true; the test fails after SLOWEST times `seconds`.
    """
    seconds *= SLOWEST
    end = time.monotonic() + seconds
    while not (got := condition()):
        if time.monotonic() > end:
            text = what() if callable(what) else what
            raise AssertionError(f'not within {seconds} s: {text}')
        time.sleep(0.01)
    return got


def read_bytes(path):
    """b'' for a missing or unreadable file."""
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b''


def read_to_end(descriptor):
    """What is left to read until the writers have closed it; closes the descriptor."""
    got = b''
    while more := os.read(descriptor, 65536):
        got += more
    os.close(descriptor)
    return got


def state_of(pid):
    """One letter; '' if there is no such process."""
    stat = read_bytes(f'/proc/{pid}/stat')
    return stat.rsplit(b')', 1)[1].split()[0].decode() if stat else ''


def is_alive(pid):
    return state_of(pid) not in ('', 'Z', 'X')


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def has_no_traces(text):
    """Internal names must not appear in user output."""
    inside = ('terminate called', 'what():', 'Aborted', 'check failed', '.cpp:', 'Traceback')
    return not any(word in text for word in inside)


# Processes of pytest-xdist have ports of their own.
_first_port = 12000 + 1000 * (int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]) % 16)
_tries = itertools.count(os.getpid())


def free_port():
    """A port below the kernel's ephemeral range; not the one of the last call."""
    for _ in range(1000):
        port = _first_port + next(_tries) % 1000
        with socket.socket() as probe:
            try:
                probe.bind(('', port))
                return port
            except OSError:
                continue
    raise AssertionError('no free port')


class Running:
    """One launcher. Its stdout and stderr go to files that can be read while it runs: to one, or,
    if `is_split`, to two."""

    def __init__(self, command, folder, path, env, is_split=False, **options):
        self.command = command
        self.out_path = path
        self.err_path = path.with_name(path.name + '-err') if is_split else path
        self.started_at = time.monotonic()
        with open(self.out_path, 'ab') as out, open(self.err_path, 'ab') as err:
            streams = {'stdout': out, 'stderr': err, 'stdin': subprocess.DEVNULL}
            self.process = subprocess.Popen(
                command, **{'cwd': folder, 'env': env, **streams, **options}
            )
        self.pid = self.process.pid

    @property
    def out(self):
        return self.out_path.read_text(errors='replace')

    @property
    def err(self):
        return self.err_path.read_text(errors='replace')

    @property
    def output(self):
        return self.out if self.out_path == self.err_path else self.out + self.err

    @property
    def seconds(self):
        return time.monotonic() - self.started_at

    def find(self, pattern):
        return re.search(pattern, self.output, re.MULTILINE)

    def wait_for(self, pattern, seconds=60):
        """The match of `pattern` in the output, as soon as it is there."""
        return self._wait(lambda: self.find(pattern), repr(pattern), seconds)

    def wait_for_all(self, pattern, count, seconds=60):
        """All matches, as soon as there are `count`."""

        def find():
            found = re.findall(pattern, self.output, re.MULTILINE)
            return found if len(found) >= count else None

        return self._wait(find, f'{count} times {pattern!r}', seconds)

    def _wait(self, find, what, seconds):
        """What `find` finds in the output; fails as soon as the launcher has ended without it."""

        def look():
            has_ended = self.process.poll() is not None
            found = find()
            assert found or not has_ended, f'ended without {what}:\n{self.output}'
            return found

        return poll(look, seconds, lambda: f'{what} in:\n{self.output}')

    def done(self, seconds=90):
        """Exit code; the test fails if it takes SLOWEST times longer."""
        seconds *= SLOWEST
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f'still running after {seconds} s:\n{self.output}')

    def send(self, number):
        self.process.send_signal(number)

    def worker(self, rank):
        """Process id of the newest worker of this rank, as digits_ddp.py prints it."""
        return int(re.findall(rf'\[rank {rank}\] started as process (\d+)', self.output)[-1])


class Launches:
    """Starts programs in `folder`; finds all their descendants by a tag."""

    def __init__(self, folder):
        self.folder = folder
        self.outputs = folder
        self.tag = f'TEST_TAG={uuid.uuid4().hex}'
        self.started = []

    def env(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_'))}
        env.pop('OMP_NUM_THREADS', None)
        env['PATH'] = f'{BIN}:{ROOT / ".venv" / "bin"}:{env["PATH"]}'
        name, value = self.tag.split('=')
        return {**env, name: value, **(extra or {})}

    def write(self, name, text):
        """Makes a file in its folder; returns the path."""
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *command, env=None, **options):
        command = [str(word) for word in command]
        output = self.outputs / f'output-{len(self.started)}'
        options = {'folder': self.folder, 'env': self.env(env), **options}
        running = Running(command, path=output, **options)
        self.started.append(running)
        return running

    def run(self, *command, seconds=90, env=None, **options):
        """Exit code and output of a program that ends."""
        running = self.start(*command, env=env, **options)
        return running.done(seconds), running.output

    def alive(self):
        """Process ids of all processes with the tag, without zombies."""
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*'):
            if self.tag.encode() in read_bytes(path / 'environ').split(b'\0'):
                found.append(int(path.name))
        return found

    def wait_until_gone(self, seconds=1.0):
        """Processes alive after SLOWEST times that time, normally none."""
        end = time.monotonic() + SLOWEST * seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)
        return self.alive()

    def close(self):
        for pid in self.alive():
            kill(pid)
        for running in self.started:
            running.process.kill()
            running.process.wait()


def skip_unless_built():
    for name in ('cpprun', 'cpprunctl'):
        if not os.access(BIN / name, os.X_OK):
            shown = BIN.relative_to(ROOT) if ROOT in BIN.parents else BIN
            pytest.skip(f'{name} is not built in {shown}')
