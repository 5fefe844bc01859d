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


def slurm(kind='', **options):
    """Starts a Slurm lab, gives it out, and stops it. `options` are those of SlurmLab."""
    if str(ROOT).startswith('/tmp/'):
        pytest.skip('a Slurm lab hides /tmp, and the sources are there')
    made = start('slurm', lambda *where: slurm_lab.SlurmLab(*where, **options), slurm_lab.NEEDED,
                 kind)
    yield made
    made.stop()


@pytest.fixture(scope='session')
def lab():
    yield from slurm()


@pytest.fixture
def large_lab():
    """Of five nodes."""
    yield from slurm('-large', nodes=5)


@pytest.fixture
def memory_lab():
    """Of one node, where Slurm limits the memory of a step."""
    yield from slurm('-memory', nodes=1, has_memory_limit=True)


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
    shutil.rmtree(folder, ignore_errors=True)  # of a first run
    folder.mkdir()
    return folder
