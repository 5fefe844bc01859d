"""packaging/torchx: the component cpprun.ddp under TorchX's scheduler local_cwd."""
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / 'build' / 'venv-torchx' / 'bin'
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build/check/bin'))
SLOWEST = 300
WORKER = """\
import os, sys
names = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'TORCHELASTIC_RESTART_COUNT')
rank, world, local, size, restarts = [int(os.environ[name]) for name in names]
print(f'rank {rank} of {world}, local {local} of {size}, restarts {restarts}, argv {sys.argv[1:]}')
sys.exit(int(restarts < int(os.environ.get('FAILURES', 0))))
"""


@pytest.fixture(scope='session')
def site(tmp_path_factory):
    """The package as users install it."""
    if not (VENV / 'torchx').exists():
        pytest.skip('tools/deps.sh --torchx')
    folder = tmp_path_factory.mktemp('torchx')
    shutil.copytree(ROOT / 'packaging' / 'torchx', folder / 'source')
    install = [VENV / 'python', '-m', 'pip', 'install', '-q', '--disable-pip-version-check',
               '--no-deps', '--no-build-isolation', '--no-index', '--target', folder / 'site']
    subprocess.run([*install, folder / 'source'], check=True, timeout=SLOWEST)
    return folder / 'site'


@pytest.fixture
def torchx(site, tmp_path):
    (tmp_path / 'train.py').write_text(WORKER)
    env = {name: value for name, value in os.environ.items() if not name.startswith('PET_')}
    env.update(PYTHONPATH=str(site), PATH=f'{BIN}:{VENV}:/usr/bin:/bin', HOME=str(tmp_path))

    def run(*args):
        return subprocess.run([VENV / 'torchx', *args], cwd=tmp_path, env=env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SLOWEST)
    return run


def free_port():
    with socket.socket() as one:
        one.bind(('', 0))
        return str(one.getsockname()[1])


def ddp(*options):
    """The component's arguments, with a port of the test's own."""
    return 'cpprun.ddp', '--rdzv_port', free_port(), *options


def local(*args):
    return 'run', '--wait', '--log', '-s', 'local_cwd', *args


def test_two_nodes_run_the_script(torchx):
    done = torchx(*local(*ddp('-j', '2x2', '--script', 'train.py', '--', '--epochs', '3')))
    assert done.returncode == 0, done.stdout
    for rank in range(4):
        line = f'rank {rank} of 4, local {rank % 2} of 2, restarts 0'
        assert line in done.stdout, done.stdout
    assert "argv ['--epochs', '3']" in done.stdout, done.stdout


def test_cpprun_restarts_the_workers(torchx):
    args = ddp('-j', '2x1', '--max_restarts', '1', '--env', 'FAILURES=1', '--script', 'train.py')
    done = torchx(*local(*args))
    assert done.returncode == 0, done.stdout
    assert 'rank 1 of 2, local 0 of 1, restarts 1' in done.stdout, done.stdout


def test_a_failure_is_the_jobs(torchx):
    args = ddp('-j', '2x1', '--env', 'FAILURES=1', '--script', 'train.py')
    done = torchx(*local(*args))
    assert done.returncode != 0 and 'FAILED' in done.stdout, done.stdout


COMPARE = """\
from cpprun_torchx import ddp
from torchx.components import dist
common = dict(m='package.train', j='1:2x4', rdzv_port=29500)
print(ddp('--epochs', '3', snapshot_dir='/a b', **common).roles[0].args[-1])
print(dist.ddp('--epochs', '3', **common).roles[0].args[-1])
"""


def test_the_command_is_that_of_dist_ddp(site):
    done = subprocess.run([VENV / 'python', '-c', COMPARE], env={'PYTHONPATH': str(site)},
                          capture_output=True, text=True, check=True, timeout=SLOWEST)
    own, theirs = done.stdout.splitlines()
    begin = "cpprun --max_restarts=0 '--snapshot-dir=/a b' "
    assert own == begin + theirs.removeprefix('torchrun '), done.stdout


def test_torchx_keeps_its_own_components(torchx):
    names = torchx('builtins').stdout
    assert 'cpprun.ddp' in names and 'dist.ddp' in names and 'utils.echo' in names, names


def test_the_page_begins_with_the_command_that_runs(torchx):
    page = (ROOT / 'docs/how-to/torchx.md').read_text()
    command = page.split('```sh\n')[1].split('\n')[0].split()
    assert command[0] == 'torchx'
    at = command.index('cpprun.ddp') + 1
    done = torchx('run', '--wait', '--log', *command[2:at], '--rdzv_port', free_port(),
                  *command[at:])
    assert done.returncode == 0 and 'rank 3 of 4' in done.stdout, done.stdout


def test_the_package_has_cppruns_version():
    project = (ROOT / 'packaging/torchx/pyproject.toml').read_text()
    cmake = (ROOT / 'CMakeLists.txt').read_text()
    version = re.search(r'project\(cpprun VERSION (\S+)', cmake)[1]
    assert f'version = "{version}"' in project
