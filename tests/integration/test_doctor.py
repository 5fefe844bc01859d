"""cpprunctl doctor on this machine, with one real fault at a time."""

import json
import os
import re
import resource
import socket
import subprocess

import pytest
from conftest import has_own_mounts
from cpprunctl import ctl
from launches import BIN

NEEDS_ROOT = pytest.mark.skipif(not has_own_mounts(), reason='needs root and namespaces')


def in_own(kind, code):
    """A command prefix: runs `code` first, in a namespace of that kind."""
    return ('unshare', kind, 'sh', '-c', code + ' && exec "$@"', 'sh')


def doctor(*args, wrap=(), env=None, **options):
    """Findings by the name of their check, and the exit code."""
    env = {**os.environ, **(env or {})}
    done = ctl('doctor', '--json', *args, wrap=wrap, env=env, **options)
    assert done.stdout, done.stderr
    return {finding['check']: finding for finding in json.loads(done.stdout)}, done.returncode


def test_prints_findings_with_the_cure_and_counts_the_rest():
    done = ctl('doctor', '--snapshot-dir', '/nowhere/at/all')
    assert done.returncode == 1
    problem = "problem  snapshots  /nowhere/at/all: a file can't be made"
    assert any(line.startswith(problem) for line in done.stdout.splitlines())
    assert '\n                    cure: give a folder that exists' in done.stdout
    assert not re.search('^ok', done.stdout, re.M)
    *_, last = done.stdout.splitlines()
    counts = (r'(\d+) checks: (\d+) ok \(-v shows them\), (?:no|\d+) notes?, '
              r'(?:no|\d+) warnings?, 1 problem; jobs will fail here')
    checks, ok = map(int, re.fullmatch(counts, last).groups())
    assert len(doctor('--snapshot-dir', '/nowhere/at/all')[0]) == checks
    assert 0 < ok < checks


def test_verbose_prints_the_checks_that_are_ok():
    done = ctl('doctor', '-v')
    assert re.search('^ok ', done.stdout, re.M)
    assert '-v shows' not in done.stdout


def test_few_open_files():
    found, code = doctor(
        '--nproc-per-node=4',
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
    )
    assert found['files']['text'].startswith('200 open files for 4 workers that may need 576')
    assert 'hard limit (now 200)' in found['files']['cure']
    assert code == 0  # a warning


def test_missing_visible_devices():
    found, code = doctor(env={'CUDA_VISIBLE_DEVICES': '0,77'})
    assert (found['gpus']['level'], code) == ('problem', 1)


def test_missing_temp_folder():
    found, code = doctor(env={'TMPDIR': '/nowhere'})
    assert (found['temp']['level'], code) == ('problem', 1)


def test_taken_port_names_the_owner():
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
        found, _ = doctor(f'--rdzv-endpoint=127.0.0.1:{port}')
    assert f'its port is taken by pid {os.getpid()}' in found['endpoint']['text']


def test_an_endpoint_that_cannot_be_resolved_is_reported():
    found, code = doctor('--rdzv-endpoint=nobody.invalid')
    assert (found['endpoint']['level'], code) == ('problem', 1)
    assert "'nobody.invalid' can't be resolved" in found['endpoint']['text']


@NEEDS_ROOT
def test_an_endpoint_that_cannot_be_reached_is_reported():
    # A network with only loopback: no route to that address.
    found, _ = doctor('--rdzv-endpoint=192.0.2.1:29400', wrap=in_own('--net', 'true'))
    assert 'tried 192.0.2.1 (Network is unreachable' in found['endpoint']['text']


@NEEDS_ROOT
@pytest.mark.parametrize(
    ('mount', 'check', 'level', 'text'),
    [
        ('mount -t tmpfs -o size=8m none /dev/shm', 'shm', 'warning', 'of 8 MiB free in /dev/shm'),
        ('mount -t tmpfs -o size=8m none {folder}', 'snapshots', 'warning', 'MiB free'),
        ('mount -t tmpfs -o size=64k none {folder}', 'snapshots', 'problem', 'No space left'),
        ('mount -t tmpfs -o ro none {folder}', 'snapshots', 'problem', 'Read-only file system'),
    ],
)
def test_small_and_read_only_disks(tmp_path, mount, check, level, text):
    wrap = in_own('--mount', mount.format(folder=tmp_path))
    found, _ = doctor(f'--snapshot-dir={tmp_path}', wrap=wrap)
    assert found[check]['level'] == level
    assert text in found[check]['text']


def started(wrap=()):
    """The launcher's output at the start, without the worker's."""
    command = [*wrap, BIN / 'cpprun', '--no-python', '/bin/true']
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_healthy_start_is_silent():
    assert started() == ''


@NEEDS_ROOT
def test_start_runs_the_preflight(tmp_path):
    """With a /dev without shm."""
    folder = tmp_path / 'dev'
    folder.mkdir()
    make = (f'mount -t tmpfs none {folder} && cd /dev && cp -a null zero urandom fd {folder}'
            f' && mount --bind {folder} /dev')
    output = started(in_own('--mount', make))
    assert 'there is no /dev/shm (mount a tmpfs there: loaders' in output


@NEEDS_ROOT
def test_unresolvable_own_name():
    found, _ = doctor(wrap=in_own('--uts', 'hostname nobody.invalid'))
    assert "'nobody.invalid' can't be resolved" in found['name']['text']
