"""The wheel for aarch64: what it requires, and its programs in qemu-user's emulation of an aarch64
machine.

Emulated are cpprun, cpprunctl and arm64's Python. cpprun's other workers are this machine's
programs: where no emulator is registered with the kernel, it runs only those. A subset of
tests/integration runs with the emulated programs too.
"""

import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import signal
import sys

import pytest
from launches import ROOT, Launches, free_port, is_alive, poll
from wheels import check_requirements, run

ARM64 = ROOT / 'build' / 'aarch64-root'  # tools/deps.sh --wheel-aarch64
ZIG = ROOT / 'build' / 'venv-wheel' / 'bin' / 'python'
QEMU = ('qemu-aarch64-static', '-L', ARM64)
PYTHON = (*QEMU, ARM64 / 'usr' / 'bin' / 'python3')
OBJDUMP = 'aarch64-linux-gnu-objdump'
NEEDED = (QEMU[0], OBJDUMP, 'aarch64-linux-gnu-g++')

SUBSET = ('one_node', 'exit_codes', 'flags', 'output', 'restarts', 'workers', 'cleanup', 'tls',
          'failure_summary', 'events')
# Begins of the names of tests of the subset that qemu-user 7.2 cannot pass, and why.
LEFT_OUT = {
    'test_unstartable_program': 'a new process gets a copy of memory, which loses the reason',
    'test_program_that_cannot_be_started': 'the same',
    'test_daemon': 'there is no PR_SET_CHILD_SUBREAPER',
    'test_reader_sees_the_end_although_a_daemon_lives': 'there is no PR_SET_CHILD_SUBREAPER',
    'test_fork_bomb': 'there is no PR_SET_CHILD_SUBREAPER',
    'test_real_time_signal': 'the emulator needs some real-time signals itself',
    'test_memory_and_descriptors_stay_flat': "the memory is the emulator's",
    'test_secret_is_in_no_memory': "the environment in memory is the emulator's",
}

# A worker in Python: it has the machine of the wheel, and an agent that answers.
WORKER = """
import os, platform, signal, sys
import cpprun_worker
assert cpprun_worker.has_agent()
cpprun_worker.heartbeat(7)
rank, restarts = os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT']
if (rank, restarts) == ('1', '0'):
    sys.exit(3)
if (rank, restarts) == ('0', '0'):
    signal.pause()
sys.stdout.write(f'{platform.machine()} rank {rank} restart {restarts}\\n')
"""


@pytest.fixture(scope='module', autouse=True)
def tools():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    missing += [path.name for path in (ARM64, ZIG) if not path.exists()]
    if missing:
        pytest.skip(f'no {", ".join(missing)}: tools/deps.sh --wheel-aarch64')


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """CPPRUN_WHEEL_AARCH64 names an existing one."""
    if os.environ.get('CPPRUN_WHEEL_AARCH64'):
        return pathlib.Path(os.environ['CPPRUN_WHEEL_AARCH64'])
    out = tmp_path_factory.mktemp('wheel')
    build = ROOT / 'packaging' / 'wheel' / 'build_wheel.py'
    zig = f'{ZIG.relative_to(ROOT)} -m ziglang'
    args = ('--machine', 'aarch64', '--out', out, '--glibc', '2.28', '--zig', zig)
    return pathlib.Path(run(build, *args, seconds=3600, cwd=ROOT).splitlines()[-1])


@pytest.fixture(scope='module')
def packages(wheel, tmp_path_factory):
    """The folder into which pip, on an aarch64 machine, installs the wheel."""
    folder = tmp_path_factory.mktemp('packages')
    (pip,) = importlib.util.find_spec('pip').submodule_search_locations
    run(*PYTHON, pip, 'install', '--no-index', '--no-compile', '--target', folder, wheel)
    return folder


@pytest.fixture(scope='module')
def programs(packages, tmp_path_factory):
    """A folder of scripts that run cpprun and cpprunctl in emulation."""
    folder = tmp_path_factory.mktemp('bin')
    for name in ('cpprun', 'cpprunctl'):
        command = shlex.join(map(str, (*QEMU, packages / 'bin' / name)))
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


class Emulated(Launches):
    """Launches of one test with the programs of the wheel."""

    def __init__(self, folder, programs, packages):
        super().__init__(folder)
        self.programs = programs
        self.packages = packages

    def cpprun(self, *args, **options):
        env = {'TMPDIR': str(self.folder), 'PYTHONPATH': str(self.packages)}
        return self.start(self.programs / 'cpprun', *args, env=env, **options)

    def shell(self, *args):
        """A job of two workers on one node. The last argument is a shell script."""
        flags = ('--standalone', '--nproc-per-node=2', '--no-python')
        return self.cpprun(*flags, *args[:-1], 'sh', '-c', args[-1])

    def ctl(self, *args, code=0):
        env = self.env({'TMPDIR': str(self.folder)})
        return run(self.programs / 'cpprunctl', *args, code=code, env=env)


@pytest.fixture
def emulated(programs, packages, tmp_path):
    made = Emulated(tmp_path, programs, packages)
    yield made
    made.close()


def test_tag_is_of_the_oldest_sufficient_glibc(wheel, packages):
    check_requirements(wheel, packages / 'bin', OBJDUMP, 'ld-linux-aarch64.so.1')


def test_pip_refuses_it_on_another_machine(wheel, tmp_path):
    pip = (sys.executable, '-m', 'pip', 'install', '--no-index', '--target', tmp_path)
    assert 'not a supported wheel' in run(*pip, wheel, code=1)


def test_version_and_help(wheel, programs):
    version = wheel.name.split('-')[1]
    for name in ('cpprun', 'cpprunctl'):
        assert run(programs / name, '--version') == f'{name} {version}\n'
        assert '--help' in run(programs / name, '-h')


@pytest.mark.parametrize('name', SUBSET)
def test_integration_tests_pass_in_emulation(programs, name):
    args = ('-m', 'pytest', '-q', '-p', 'no:cacheprovider', f'tests/integration/test_{name}.py')
    chosen = ' and '.join(f'not {left}' for left in LEFT_OUT)
    env = {**os.environ, 'CPPRUN_BIN': str(programs)}
    output = run(sys.executable, *args, '-k', chosen, cwd=ROOT, seconds=3000, env=env)
    assert ' passed' in output, output


def test_python_workers_reach_their_agent(emulated):
    (emulated.folder / 'worker.py').write_text(WORKER)
    flags = ('--standalone', '--nproc-per-node=2', '--max-restarts=1', '--no-python')
    job = emulated.cpprun(*flags, *PYTHON, 'worker.py')
    assert job.done() == 0, job.output
    output = re.findall(r'^(\w+ rank \d restart \d)$', job.output, re.M)
    assert sorted(output) == ['aarch64 rank 0 restart 1', 'aarch64 rank 1 restart 1']


def test_cpprunctl_shows_and_stops_a_job(emulated):
    name = f'emulated-{os.getpid()}'
    job = emulated.shell(f'--job-name={name}', 'echo begun; exec sleep 1000')
    job.wait_for_all('^begun$', 2)
    assert name in emulated.ctl('ps')
    emulated.ctl('stop', name)
    assert job.done() == 130, job.output
    assert not emulated.wait_until_gone()


def test_workers_and_what_they_leave_end_with_a_killed_agent(emulated):
    # cpprun replaces `$$` by `$`, as torchrun does.
    job = emulated.shell('setsid sleep 1000 & echo pids $$$$ $!; exec sleep 1000')
    found = job.wait_for_all(r'^pids (\d+) (\d+)$', 2)
    pids = [int(pid) for pair in found for pid in pair]
    job.send(signal.SIGKILL)
    poll(lambda: not any(map(is_alive, pids)), what='the end of the workers')
    assert not emulated.wait_until_gone()


def test_two_nodes_share_a_secret(emulated):
    secret = emulated.folder / 'secret'
    secret.write_text('0123456789abcdef' * 2)
    secret.chmod(0o600)
    endpoint = ('--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    flags = ('--nnodes=2', *endpoint, '--rdzv-id=two', f'--secret-file={secret}', '--no-python')
    nodes = [emulated.cpprun(*flags, 'sh', '-c', 'echo rank $RANK of $WORLD_SIZE') for _ in '01']
    assert [node.done() for node in nodes] == [0, 0], [node.output for node in nodes]
    output = re.findall(r'^rank \d of \d$', ''.join(node.output for node in nodes), re.M)
    assert sorted(output) == ['rank 0 of 2', 'rank 1 of 2']


def test_a_worker_that_cannot_start_ends_with_127(emulated):
    # A new process gets a copy of the agent's memory, so the agent does not see why.
    script = emulated.folder / 'script'
    script.write_text('#!/no/such/interpreter\n')
    script.chmod(0o755)
    job = emulated.cpprun('--standalone', '--no-python', script)
    assert job.done() == 1
    assert 'exited with code 127' in job.output
