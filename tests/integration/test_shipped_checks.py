"""The node checks in packaging/checks and the hooks in packaging/hooks."""

import concurrent.futures
import os
import subprocess
import sys

import pytest

from nodes import ROOT

CHECKS = ROOT / 'packaging/checks'
HOOKS = ROOT / 'packaging/hooks'


def smi(folder, *rows):
    """A program that prints what nvidia-smi prints."""
    path = folder / 'nvidia-smi'
    path.write_text('\n'.join(('#!/bin/sh', *(f'echo "{row}"' for row in rows), '')))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ('rows', 'options', 'code', 'expected'),
    [
        (('0, 0, 41, P0', '1, 0, 43, P0'), ('--count=2',), 0, 'ok: 2 GPUs'),
        (('0, 0, 41, P0',), ('--count=2',), 1, '1 GPUs answer, not 2'),
        (('0, 3, 41, P0',), (), 1, 'GPU 0 has 3 uncorrected memory errors'),
        (('0, [N/A], 97, P0',), (), 1, 'GPU 0 has 97 degrees'),
        (('0, [Unknown Error], 41, P0',), (), 1, 'GPU 0 does not answer'),
    ],
)
def test_gpu_check(tmp_path, rows, options, code, expected):
    program = smi(tmp_path, *rows)
    done = subprocess.run(
        [sys.executable, CHECKS / 'cpprun-check-gpus', f'--nvidia-smi={program}', *options],
        capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (code, expected + '\n')


def test_machine_check(tmp_path):
    def check(*options):
        done = subprocess.run([sys.executable, CHECKS / 'cpprun-check-machine', *options],
                              capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout

    assert check(f'--min-free={tmp_path}:0', '--min-memory=0.001')[0] == 0
    assert 'GiB free, less than 100000000' in check(f'--min-free={tmp_path}:100000000')[1]
    assert check('--min-memory=100000000')[0] == 1
    assert check(f'--min-free={tmp_path / "none"}:1') == (
        1, f'{tmp_path / "none"} cannot be read: No such file or directory\n')
    assert os.listdir(tmp_path) == [], 'the probe is removed'


def health_response(success, exit_code=0, output='', error=''):
    """A HealthCheckResponse of NVRx's nvhcd.proto, encoded by hand."""
    def text(number, value):
        assert len(value) < 128
        return bytes((number << 3 | 2, len(value))) + value.encode() if value else b''

    head = (b'\x08\x01' if success else b'') + (bytes((0x10, exit_code)) if exit_code else b'')
    return head + text(3, output) + text(4, error)


@pytest.fixture
def health_service(tmp_path):
    """A real gRPC service at a Unix socket; the response is the item of `state`."""
    grpc = pytest.importorskip('grpc', reason='tools/deps.sh --test')
    state = {'requests': []}

    def answer(request, context):
        state['requests'].append(request)
        return state['response']

    run = grpc.unary_unary_rpc_method_handler(answer)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler('nvhcd.HealthCheckService', {'RunHealthCheck': run}),)
    )
    state['socket'] = tmp_path / 'nvhcd.sock'
    assert server.add_insecure_port(f'unix:{state["socket"]}')
    server.start()
    yield state
    server.stop(None).wait()


def health_check(socket, *options):
    done = subprocess.run(
        [sys.executable, CHECKS / 'cpprun-check-nvhcd', f'--socket={socket}', *options],
        capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout.removesuffix('\n')


@pytest.mark.parametrize(
    ('response', 'code', 'expected'),
    [
        (health_response(True, output='{"fail_count": 0}'), 0, 'ok'),
        (
            health_response(True, output='{"fail_count": 2, "failed_checks": ["gpu", "nic"]}'),
            1,
            '2 health checks failed: gpu, nic',
        ),
        (health_response(True, output='[]'), 1, 'the health check gives no fail_count: []'),
        (
            health_response(False, 42, error='no\nscript'),
            1,
            'the health check ended with 42: no script',
        ),
    ],
)
def test_health_service_check(health_service, response, code, expected):
    health_service['response'] = response
    assert health_check(health_service['socket'], '--arg=--no-slurm') == (code, expected)
    assert health_service['requests'] == [b'\x0a\x0a--no-slurm']


def test_health_service_check_without_a_service(tmp_path):
    pytest.importorskip('grpc', reason='tools/deps.sh --test')
    socket = tmp_path / 'none.sock'
    code, output = health_check(socket, '--timeout=60')
    assert code == 1 and output.startswith(f'{socket} does not answer: '), output
    assert health_check(socket, '--optional') == (0, f'ok: {socket} is not there')


def run_slurm_hook(folder, *args):
    """The commands that the hook gives to Slurm, and its exit code. The program in the place of
    scontrol notes its arguments."""
    program, calls = folder / 'scontrol', folder / 'calls'
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{calls}\n')
    program.chmod(0o755)
    calls.write_text('')
    done = subprocess.run([HOOKS / 'cpprun-exclude-slurm', *args], capture_output=True, text=True,
                          env={**os.environ, 'CPPRUN_SCONTROL': str(program)}, timeout=600)
    return calls.read_text().splitlines(), done.returncode


def test_slurm_hook(tmp_path):
    assert run_slurm_hook(tmp_path, 'exclude', 'n1.cluster', '2 failures; the last: rank 9') == (
        ['update NodeName=n1 State=DRAIN Reason=cpprun: 2 failures; the last: rank 9'], 0)
    assert run_slurm_hook(tmp_path, 'readmit', 'n1', '') == (
        ['update NodeName=n1 State=RESUME'], 0)
    assert run_slurm_hook(tmp_path, 'drain', 'n1', '') == ([], 1)
