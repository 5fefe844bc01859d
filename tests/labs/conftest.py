"""A Slurm lab and hosts with sshd for the tests of the folder, which are skipped where there can be
none."""
import os
import pathlib
import shutil

import pytest
import slurm_lab
import ssh_lab

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope='session')
def lab():
    if os.getuid() != 0:
        pytest.skip('a Slurm lab needs root: network and mount namespaces')
    if str(ROOT).startswith('/tmp/'):
        pytest.skip('a Slurm lab hides /tmp, and the sources are there')
    missing = [program for program in slurm_lab.NEEDED if shutil.which(program) is None]
    if missing:
        pytest.skip('a Slurm lab needs ' + ', '.join(missing))
    top = ROOT / 'build' / 'labs'
    try:
        made = slurm_lab.SlurmLab(top / f'slurm-{os.getpid()}', top / 'slurm-root')
    except slurm_lab.Unavailable as why:
        pytest.skip(str(why))
    yield made
    made.stop()


@pytest.fixture(scope='session')
def hosts():
    if os.getuid() != 0:
        pytest.skip('hosts with sshd need root: network and mount namespaces')
    missing = [program for program in ssh_lab.NEEDED if shutil.which(program) is None]
    if missing:
        pytest.skip('hosts with sshd need ' + ', '.join(missing))
    top = ROOT / 'build' / 'labs'
    try:
        made = ssh_lab.SshLab(top / f'ssh-{os.getpid()}', top / 'ssh-root')
    except slurm_lab.Unavailable as why:
        pytest.skip(str(why))
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
