"""A Slurm lab and hosts with sshd for the tests of the folder, which are skipped where there can be
none."""
import os
import pathlib
import shutil

import pytest
import slurm_lab
import ssh_lab

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(name, make, needed, kind=''):
    """A lab in build/labs; skips the test where there can be none. `make` takes its own folder and
    that of the unpacked packages. Labs of the same name that run at once have different kinds."""
    if os.getuid() != 0:
        pytest.skip(f'{name} needs root: network and mount namespaces')
    missing = [program for program in needed if shutil.which(program) is None]
    if missing:
        pytest.skip(f'{name} needs ' + ', '.join(missing))
    top = ROOT / 'build' / 'labs'
    try:
        return make(top / f'{name}{kind}-{os.getpid()}', top / f'{name}-root')
    except slurm_lab.Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope='session')
def lab():
    if str(ROOT).startswith('/tmp/'):
        pytest.skip('a Slurm lab hides /tmp, and the sources are there')
    made = start('slurm', slurm_lab.SlurmLab, slurm_lab.NEEDED)
    yield made
    made.stop()


@pytest.fixture
def large_lab():
    """Of five nodes."""
    if str(ROOT).startswith('/tmp/'):
        pytest.skip('a Slurm lab hides /tmp, and the sources are there')
    made = start('slurm', lambda *where: slurm_lab.SlurmLab(*where, nodes=5), slurm_lab.NEEDED,
                 '-large')
    yield made
    made.stop()


@pytest.fixture
def memory_lab():
    """Of one node, where Slurm limits the memory of a step."""
    if str(ROOT).startswith('/tmp/'):
        pytest.skip('a Slurm lab hides /tmp, and the sources are there')
    made = start('slurm', lambda *where: slurm_lab.SlurmLab(*where, nodes=1, has_memory_limit=True),
                 slurm_lab.NEEDED, '-memory')
    yield made
    made.stop()


@pytest.fixture(scope='session')
def hosts():
    made = start('ssh', ssh_lab.SshLab, ssh_lab.NEEDED)
    yield made
    made.stop()


@pytest.fixture(scope='session')
def cpprun():
    return pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build/check/bin')) / 'cpprun'


@pytest.fixture
def place(lab, request):
    """A folder that all nodes of the lab see."""
    folder = lab.folder / request.node.name
    folder.mkdir()
    return folder
