"""The wheel that is linked for glibc 2.28: its requirements; that it runs here and on Debian 11."""

import ctypes
import errno
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest
from launches import BIN, ROOT, skip_unless_built
from wheels import check_requirements, run

ZIG = ROOT / 'build' / 'venv-wheel' / 'bin' / 'python'  # tools/deps.sh --wheel
OLD = 'bullseye'  # glibc 2.31
INSIDE = """
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
exec chroot "$1" /tmp/cpprun --standalone --nproc-per-node=2 --no-python sh -c "$2"
"""


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """CPPRUN_WHEEL names an existing one."""
    skip_unless_built()
    if os.environ.get('CPPRUN_WHEEL'):
        return pathlib.Path(os.environ['CPPRUN_WHEEL'])
    if not ZIG.exists():
        pytest.skip('no ziglang: tools/deps.sh --wheel')
    out = tmp_path_factory.mktemp('wheel')
    zig = f'{ZIG.relative_to(ROOT)} -m ziglang'
    args = ('--bin', BIN, '--out', out, '--glibc', '2.28', '--zig', zig)
    return pathlib.Path(run(ROOT / 'packaging/wheel/build_wheel.py', *args, cwd=ROOT).strip())


@pytest.fixture(scope='module')
def scripts(wheel, tmp_path_factory):
    """The folder of the programs, installed by pip into a clean environment."""
    venv = tmp_path_factory.mktemp('clean') / 'venv'
    run(sys.executable, '-m', 'venv', '--without-pip', venv)
    pip = [sys.executable, '-m', 'pip', '--python', venv / 'bin' / 'python']
    run(*pip, 'install', '--no-index', wheel)
    return venv / 'bin'


def test_tag_is_of_the_oldest_sufficient_glibc(wheel, scripts):
    check_requirements(wheel, scripts, 'objdump', 'ld-linux-x86-64.so.2')


def test_stand_in_for_a_wait_ends_at_the_deadline(tmp_path):
    library = tmp_path / 'stand_ins.so'
    source = ROOT / 'packaging' / 'wheel' / 'glibc_stand_ins.c'
    # Another name, because this machine's glibc has the function too.
    args = ('-shared', '-fPIC', '-Wall', '-Werror', '-Dpthread_cond_clockwait=wait_until')
    run('cc', *args, source, '-o', library)
    libc, stand_ins = ctypes.CDLL(None), ctypes.CDLL(str(library))
    # All zero: initialised.
    condition, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    assert libc.pthread_mutex_lock(mutex) == 0
    for seconds in (-5, 0, 0.3, 0.6, 0.9):
        until = time.monotonic_ns() + int(seconds * 10**9)
        spec = (ctypes.c_long * 2)(*divmod(until, 10**9))
        ended = stand_ins.wait_until(condition, mutex, time.CLOCK_MONOTONIC, spec)
        assert ended == errno.ETIMEDOUT
        assert time.monotonic_ns() >= until
    assert libc.pthread_mutex_unlock(mutex) == 0


def test_runs_here_with_the_given_environment(scripts):
    env = {**os.environ, 'FROM_OUTSIDE': 'yes'}
    for command in ([scripts / 'cpprun'], [scripts / 'python', '-m', 'cpprun']):
        output = run(*command, '--standalone', '--nproc-per-node=2', '--no-python', 'sh', '-c',
                     'echo $RANK $FROM_OUTSIDE', env=env)
        assert re.findall(r'^(\d) yes$', output, re.M) in (['0', '1'], ['1', '0']), output


def test_exceptions_and_failures_are_reported(scripts, tmp_path):
    # CLI11 and the JSON reader throw.
    assert '--nonsense' in run(scripts / 'cpprunctl', 'ps', '--nonsense', code=2)
    (tmp_path / 'events.jsonl').write_text('{"event": [\n{"event":"warning","text":"so"}\n')
    assert 'warning: so' in run(scripts / 'cpprunctl', 'events', tmp_path / 'events.jsonl')
    output = run(scripts / 'cpprun', '--standalone', '--no-python', 'sh', '-c', 'exit 3', code=1)
    assert 'exited with code 3' in output and 'Root Cause' in output


def test_runs_with_an_older_glibc(scripts, tmp_path):
    if os.geteuid() != 0 or shutil.which('mmdebstrap') is None:
        pytest.skip('a system of Debian 11 takes root and mmdebstrap')
    root = tmp_path / OLD
    made = subprocess.run(
        ['mmdebstrap', '-q', '--variant=extract', '--include=libc6,dash,coreutils', OLD, root],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f'no Debian 11 here: {made.stderr[-300:]}')
    assert list(root.glob('lib/*/libc-2.31.so'))
    (root / 'proc').mkdir(exist_ok=True)
    shutil.copy(scripts / 'cpprun', root / 'tmp')
    args = ('unshare', '--mount', '--propagation', 'private', 'sh', '-c', INSIDE, 'sh', root)
    output = run(*args, 'echo here $RANK $FROM_OUTSIDE',
                 env={**os.environ, 'FROM_OUTSIDE': 'yes', 'TMPDIR': '/tmp'})
    assert sorted(re.findall(r'^here (\d) yes$', output, re.M)) == ['0', '1'], output
    assert 'exited with code 4' in run(*args, 'exit 4', code=1)
