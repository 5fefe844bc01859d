"""The packages of packaging/: built, installed into an empty place, used."""

import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from conftest import ROOT
from launches import BIN
from torch_python import PYTHON as TORCH

PACKAGING = ROOT / 'packaging'


def run(*command, cwd=None, seconds=120):
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command],
        cwd=cwd,
        timeout=seconds,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope='module', autouse=True)
def built():
    if not (BIN / 'cpprun').exists():
        pytest.skip('cpprun is not built')


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    """The tree that the Debian packages make."""
    folder = tmp_path_factory.mktemp('debian')
    run('cpack', '--config', BIN.parent / 'CPackConfig.cmake', '-B', folder, cwd=folder)
    packages = sorted(path.name for path in folder.glob('*.deb'))
    assert [name.split('_')[0] for name in packages] == ['cpprun', 'libcpprun-dev']
    for name in packages:
        run('dpkg-deb', '-x', folder / name, folder / 'root')
    return folder


def test_debian_packages_contain_working_programs(debian, cpprun):
    programs = debian / 'root' / 'usr' / 'bin'
    code, output = cpprun.run(
        programs / 'cpprun', '--standalone', '--nproc_per_node=2', '--no-python', 'echo', 'hello'
    )
    assert (code, output.count('hello')) == (0, 2), output
    assert 'serve' in run(programs / 'cpprunctl', '--help')


def test_debian_packages_name_their_dependencies(debian):
    (package,) = debian.glob('cpprun_*.deb')
    (wanted,) = re.findall(r'libc6 \(>= (\S+)\)', run('dpkg-deb', '-f', package, 'Depends'))
    symbols = set(re.findall(rb'\0GLIBC_(2\.\d+)\0', (BIN / 'cpprun').read_bytes()))
    newest = max(symbols, key=lambda text: [int(part) for part in text.split(b'.')])
    assert wanted == newest.decode()


def test_debian_packages_contain_pages_units_and_completion(debian):
    usr = debian / 'root' / 'usr'
    assert (usr / 'share/man/man1/cpprun.1').read_text().startswith('.TH CPPRUN 1')
    completion = usr / 'share/bash-completion/completions/cpprun'
    assert '--nproc-per-node' in completion.read_text()
    run('bash', '-n', completion)
    units = sorted(path.name for path in (usr / 'lib/systemd/system').iterdir())
    assert units == ['cpprun-rendezvous.service', 'cpprun@.service']


def test_every_unit_starts_a_program_of_the_package(debian, tmp_path):
    for unit in (debian / 'root/usr/lib/systemd/system').iterdir():
        (program,) = re.findall(r'^ExecStart=(\S+)', unit.read_text(), re.M)
        assert (debian / 'root' / program.lstrip('/')).exists(), unit
        if shutil.which('systemd-analyze'):
            name = unit.name.replace('@', '@job')
            (tmp_path / name).write_text(unit.read_text().replace('/usr/bin', str(BIN)))
            output = run('systemd-analyze', 'verify', '--man=no', tmp_path / name)
            assert unit.name.split('.')[0] not in output


def command_of(unit, root, **variables):
    """The command that systemd would run: `${NAME}` is one word, `$NAME` is split into words."""
    text = unit.read_text()
    known = dict(re.findall(r'^Environment=(\w+)=(.*)$', text, re.M)) | variables
    (line,) = re.findall(r'^ExecStart=(.*)$', text, re.M)
    words = []
    for word in line.split():
        if re.fullmatch(r'\$\w+', word):
            words += known[word[1:]].split()
        else:
            words.append(re.sub(r'\$\{(\w+)\}', lambda found: known[found[1]], word))
    return [root / words[0].lstrip('/'), *words[1:]]


def test_commands_of_the_units_run_a_job(debian, cpprun):
    """A server unit, and two agents of a job that meet there; systemd itself is absent."""
    root, units = debian / 'root', debian / 'root/usr/lib/systemd/system'
    server = cpprun.start(
        *command_of(units / 'cpprun-rendezvous.service', root, CPPRUN_LISTEN='127.0.0.1:0'))
    endpoint = server.wait_for(r'serving on (127\.0\.0\.1:\d+)')[1]
    flags = f'--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint={endpoint} --rdzv-id=digits'
    agent = command_of(units / 'cpprun@.service', root, CPPRUN_ARGS=f'{flags} --no-python env')
    agents = [cpprun.start(*agent) for _ in range(2)]
    assert [each.done() for each in agents] == [0, 0], [each.output for each in agents]
    ranks = [each.find(r'^RANK=(\d)$')[1] for each in agents]
    assert sorted(ranks) == ['0', '1']
    server.send(15)
    server.done()


def test_manual_pages_have_no_errors():
    if shutil.which('man') is None:
        pytest.skip('there is no man')
    for page in (PACKAGING / 'man').iterdir():
        assert run('man', '--warnings', '-l', page).count('warning') == 0


def test_scripts_are_valid_shell():
    run('bash', '-n', PACKAGING / 'slurm' / 'cpprun.sbatch')


def test_versions_match_the_project():
    (version,) = re.findall(r'project\(cpprun VERSION (\S+)', (ROOT / 'CMakeLists.txt').read_text())
    for page in (PACKAGING / 'man').iterdir():
        assert f'"cpprun {version}"' in page.read_text().splitlines()[0]
    assert f'## {version}' in (ROOT / 'CHANGELOG.md').read_text()


def test_wheel_installs_the_programs(tmp_path, cpprun):
    wheel = run(PACKAGING / 'wheel' / 'build_wheel.py', '--bin', BIN, '--out', tmp_path).strip()
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    pip = [sys.executable, '-m', 'pip', '--python', tmp_path / 'venv' / 'bin' / 'python']
    run(*pip, 'install', '--no-index', wheel)
    python = tmp_path / 'venv' / 'bin' / 'python'
    for command in ([tmp_path / 'venv' / 'bin' / 'cpprun'], [python, '-m', 'cpprun']):
        code, output = cpprun.run(
            *command, '--standalone', '--nproc_per_node=2', '--no-python', 'echo', 'hello'
        )
        assert (code, output.count('hello')) == (0, 2), output
    look = "from importlib.metadata import entry_points as e; print(*e(group='torchrun.handlers'))"
    shown = run(python, '-c', look)
    assert "value='cpprun.torchrun_handler:creator'" in shown, shown


THREE_LINES = """
import os, platform
import torch
import torch.distributed as dist
import cpprun_worker

dist.init_process_group('gloo')
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(9, 3))
optimizer = torch.optim.AdamW(model.parameters())
state = cpprun_worker.Snapshot(model=model, optimizer=optimizer)
step = state.resume()
print(f'rank {dist.get_rank()}: from {step} {state.source}, {cpprun_worker.__file__}', flush=True)
if platform.machine() == 'x86_64':
    from cpprun_worker._snapshot import stream_copy
    assert stream_copy._function() is not None
while step < 6:
    cpprun_worker.fault_point(step=step)
    model(torch.randn(4, 9)).sum().backward()
    optimizer.step()
    step += 1
    state.maybe_save(step, every=2)
    state.wait()
dist.barrier()
os._exit(0)  # torch 2.11 sometimes aborts while gloo's threads still run
"""


def test_wheel_brings_snapshots_to_an_environment_with_torch(tmp_path, cpprun):
    """That of .venv's torch, which a .pth file shows to the new one."""
    find = 'import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])'
    found = subprocess.run([TORCH, '-c', find], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f'not run: {TORCH} has no torch')
    wheel = run(PACKAGING / 'wheel' / 'build_wheel.py', '--bin', BIN, '--out', tmp_path).strip()
    run(TORCH, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    run(sys.executable, '-m', 'pip', '--python', python, 'install', '--no-index', wheel)
    (folder,) = (tmp_path / 'venv').glob('lib/python*/site-packages')
    (folder / 'torch.pth').write_text(found.stdout)
    for name in ('py.typed', 'lightning.py', 'transformers.py', 'accelerate.py'):
        assert (folder / 'cpprun_worker' / name).exists()
    (tmp_path / 'train.py').write_text(THREE_LINES)
    code, output = cpprun.run(
        *(tmp_path / 'venv' / 'bin' / 'cpprun', '--standalone', '--nproc_per_node=2'),
        *('--max-restarts=1', f'--snapshot-dir={tmp_path}/runs', tmp_path / 'train.py'),
        env={'CPPRUN_FAULTS': 'kill:rank=1,step=5,attempt=0', 'PYTHON_EXEC': str(python)},
    )
    assert code == 0, output
    assert len(re.findall(f'from 0 none, {folder}', output)) == 2, output
    assert len(re.findall(f'from 4 memory, {folder}', output)) == 2, output
    ctl = tmp_path / 'venv' / 'bin' / 'cpprunctl'
    assert 'step-6' in run(ctl, 'snapshot', 'ls', tmp_path / 'runs')


def test_wheel_is_rejected_where_glibc_is_too_old():
    tags = sysconfig.get_platform()
    sys.path.insert(0, str(PACKAGING / 'wheel'))
    import build_wheel

    assert tags.startswith('linux')
    assert build_wheel.newest_glibc([BIN / 'cpprun']) >= (2, 34)
