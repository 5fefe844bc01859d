"""Starts launchers for the end-to-end tests, with a deadline for everything and no process left.

CPPRUN_BIN is the folder with cpprun and cpprunctl (default build/check/bin); Python workers run in
the project's .venv.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / 'examples' / 'python'
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin')).resolve()


class Running:
    """One launcher; its stdout and stderr go to one file that can be read while it runs."""

    def __init__(self, command, folder, output, env):
        self.path = output
        with open(output, 'wb') as file:
            self.process = subprocess.Popen(
                command, cwd=folder, env=env, stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )

    @property
    def output(self):
        return self.path.read_text(errors='replace')

    def wait_for(self, pattern, seconds=60):
        """The match of `pattern` in the output, as soon as it is there."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.output)):
            assert self.process.poll() is None, f'ended without {pattern!r}:\n{self.output}'
            assert time.monotonic() < end, f'no {pattern!r} within {seconds} s:\n{self.output}'
            time.sleep(0.02)
        return match

    def done(self, seconds=90):
        """Exit code; the test fails if it takes longer."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f'still running after {seconds} s:\n{self.output}')

    def worker(self, rank):
        """Process id of the newest worker of this rank, as digits_ddp.py prints it."""
        return int(re.findall(rf'\[rank {rank}\] started as process (\d+)', self.output)[-1])


class Launches:
    """Starts programs in `folder`; knows all their processes, however far they ran, by a tag."""

    def __init__(self, folder):
        self.folder = folder
        self.outputs = folder
        self.tag = f'E2E_TAG={uuid.uuid4().hex}'
        self.started = []

    def env(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_'))}
        env.pop('OMP_NUM_THREADS', None)
        env['PATH'] = f'{BIN}:{ROOT / ".venv" / "bin"}:{env["PATH"]}'
        name, value = self.tag.split('=')
        return {**env, name: value, **(extra or {})}

    def start(self, *command, env=None):
        command = [str(word) for word in command]
        output = self.outputs / f'output-{len(self.started)}'
        running = Running(command, self.folder, output, self.env(env))
        self.started.append(running)
        return running

    def run(self, *command, seconds=90, env=None):
        """Exit code and output of a program that ends."""
        running = self.start(*command, env=env)
        return running.done(seconds), running.output

    def alive(self):
        """Process ids of everything that carries the tag, zombies apart."""
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                if self.tag.encode() in (path / 'environ').read_bytes().split(b'\0'):
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def wait_until_gone(self, seconds=1.0):
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)
        return self.alive()

    def close(self):
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for running in self.started:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def launches(tmp_path):
    """For programs that need no launcher."""
    made = Launches(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cpprun(launches):
    """The same, where cpprun is built."""
    if not os.access(BIN / 'cpprun', os.X_OK):
        pytest.skip(
            f'cpprun is not built in {BIN.relative_to(ROOT) if ROOT in BIN.parents else BIN}'
        )
    return launches


def pytest_report_header(config):
    return f'cpprun from {BIN}, python {sys.version.split()[0]}'
