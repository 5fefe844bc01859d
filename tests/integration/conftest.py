"""Black-box tests of bad input and faults: cpprun and cpprunctl as programs, without access to
their internals.

Workers are small shell or Python scripts, written by the tests. In them `$MARKS` is a folder in
which they leave files.
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from launches import (
    BIN,
    Launches,
    free_port,
    has_no_traces,
    is_alive,
    kill,
    poll,
    read_bytes,
    skip_unless_built,
    state_of,
)

PYTHON = sys.executable


class Jobs(Launches):
    """Launches of one test. Each launcher's stdout and stderr are separate; TMPDIR is the test's.
    """

    def __init__(self, folder):
        super().__init__(folder)
        self.marks = folder / 'marks'
        self.tmp = folder / 'tmp'
        self.marks.mkdir()
        self.tmp.mkdir()
        self.scripts = itertools.count()
        self.watched = []

    def env(self, extra=None):
        own = {'MARKS': str(self.marks), 'TMPDIR': str(self.tmp)}
        own['TORCH_ELASTIC_SHUTDOWN_TIMEOUT'] = '3600'  # a stop that waits for it is a hang
        made = super().env({**own, **(extra or {})})
        return {name: value for name, value in made.items() if value is not None}

    def script(self, code, interpreter):
        path = self.folder / f'worker-{next(self.scripts)}'
        path.write_text(f'#!{interpreter}\n{code}\n')
        path.chmod(0o755)
        return path

    def sh(self, code):
        """A worker in shell."""
        return self.script(code, '/bin/sh')

    def py(self, code):
        """A worker in Python without site packages."""
        path = self.script(code, f'{PYTHON} -ISu')
        return ('--no-python', path)

    def cpprun(self, *args, wrap=(), **options):
        """Starts it. Tuples in `args` are expanded; `wrap` precedes the launcher."""
        flat = [w for arg in args for w in (arg if isinstance(arg, tuple) else (arg,))]
        return self.start(*wrap, BIN / 'cpprun', *flat, is_split=True, **options)

    def mark(self, name, seconds=20):
        """Content of a file in $MARKS, as soon as it is not empty."""
        path = self.marks / name
        shown = [running.output for running in self.started]
        poll(lambda: read_bytes(path), seconds, lambda: f'mark {name}; output: {shown}')
        return path.read_text().strip()

    def numbers(self, names, seconds=20):
        return [int(self.mark(name, seconds)) for name in names]

    def watch(self, *pids):
        """Processes without the tag; the fixture kills them at the end of the test."""
        self.watched += pids

    def close(self):
        super().close()
        for pid in self.watched:
            kill(pid)


@pytest.fixture
def jobs(tmp_path):
    skip_unless_built()
    made = Jobs(tmp_path)
    yield made
    made.close()


def cgroup_folders(token):
    """The cgroup of the launcher whose workers carry this token."""
    with open('/proc/mounts') as mounts:
        points = [line.split()[1] for line in mounts if line.split()[2] == 'cgroup2']
    name = f'cpprun-{token[:16]}'
    # os.walk skips folders that vanish meanwhile; rglob raises.
    return [
        pathlib.Path(at) / name
        for point in points
        for at, folders, _ in os.walk(point)
        if name in folders
    ]


def as_another_user(jobs):
    """A command prefix that makes the launcher another user's, who may write the test's folders."""
    if os.geteuid() != 0 or not shutil.which('setpriv'):
        pytest.skip('needs root and setpriv, to be somebody else')
    for path in (jobs.folder, *jobs.folder.parents):
        if path.stat().st_uid == 0 and path.stat().st_mode & 0o077 == 0:
            path.chmod(0o711)
    for path in (jobs.tmp, jobs.marks):
        path.chmod(0o777)
    wrap = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
    probe = subprocess.run([*wrap, BIN / 'cpprun', '--version'], check=False, capture_output=True)
    if probe.returncode != 0:
        pytest.skip('another user may not start this cpprun')
    return wrap


def has_own_mounts():
    """True if this process may create a mount namespace."""
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(['unshare', '-m', 'true'], check=False, capture_output=True)
    return tried.returncode == 0


def without_cgroups():
    """A command prefix that hides cgroup v2."""
    code = (
        'while read -r _ at type _; do [ "$type" != cgroup2 ] || umount -l "$at"; done'
        ' </proc/mounts; exec "$@"'
    )
    return ('unshare', '-m', 'sh', '-c', code, 'sh')


@pytest.fixture(params=['as it is', 'no cgroup'])
def ground(request):
    """Launcher prefixes: the machine as it is, and without cgroup v2."""
    if request.param == 'as it is':
        return ()
    if not has_own_mounts():
        pytest.skip('hiding cgroup v2 needs root and mount namespaces')
    return without_cgroups()
