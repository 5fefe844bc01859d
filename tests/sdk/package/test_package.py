"""Users' projects, built against an installed cpprun."""

import pathlib
import re

import pytest
from launches import ROOT

HERE = pathlib.Path(__file__).resolve().parent
WORKER_ONLY = HERE / 'worker_only'
CMAKE_PROJECT = ROOT / 'examples' / 'cmake_project'


def test_project_of_one_file_trains_with_two_workers(package, torch, copy):
    project = copy(CMAKE_PROJECT)
    sources = [path.name for path in project.iterdir() if path.suffix == '.cpp']
    assert len(sources) == 1
    build = project / 'build'
    package.build(project, build, f'-DLIBTORCH={torch}')
    program = build / pathlib.Path(sources[0]).stem
    code, output = package.launch(program)
    assert code == 0, output
    found = re.search(r'^2 rank\(s\), loss \S+, line (\S+) x \+ (\S+)$', output, re.M)
    assert found, output
    assert abs(float(found[1]) - 3) < 0.1 and abs(float(found[2]) - 2) < 0.1
    _, dynamic = package.run('readelf', '-d', program)
    assert str(package.prefix / 'lib') in dynamic, 'the NCCL plugin would not be found'
    assert 'PREINIT_ARRAY' in dynamic, 'malloc would be tuned too late'


def test_its_cmake_file_has_five_lines():
    lines = (CMAKE_PROJECT / 'CMakeLists.txt').read_text().splitlines()
    commands = [line for line in lines if line.strip() and not line.lstrip().startswith('#')]
    assert len(commands) <= 5, commands


def test_worker_needs_no_libtorch(package, copy):
    project = copy(WORKER_ONLY)
    package.build(project, project / 'build', '-DLIBTORCH=/none')
    code, output = package.launch(project / 'build' / 'worker_only', n=3)
    assert code == 0, output
    for rank in range(3):
        assert f'rank {rank} of 3 met all' in output
    _, linked = package.run('ldd', project / 'build' / 'worker_only')
    assert 'torch' not in linked


def fake_torch(folder, version):
    """A folder that looks like LibTorch of that version, for configuration only."""
    for name in ('lib/libtorch_cpu.so', 'lib/libc10.so'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    header = folder / 'include/torch/headeronly/version.h'
    header.parent.mkdir(parents=True)
    names = zip(('MAJOR', 'MINOR', 'PATCH'), version.split('.'))
    header.write_text(''.join(f'#define TORCH_VERSION_{k} {v}\n' for k, v in names))
    (folder / 'include/torch/csrc/api/include/torch').mkdir(parents=True)
    (folder / 'include/torch/csrc/api/include/torch/version.h').touch()
    return folder


@pytest.mark.parametrize(
    'version, words',
    [(None, ('-DLIBTORCH=', 'pip install')), ('1.99.0', ('1.99.0', '-DLIBTORCH='))],
    ids=['none', 'another'],
)
def test_missing_libtorch_is_reported_with_the_cure(
    package, torch, copy, tmp_path, version, words
):
    project = copy(CMAKE_PROJECT)
    folder = fake_torch(tmp_path / 'torch', version) if version else '/none'
    code, output = package.configure(project, project / 'build', f'-DLIBTORCH={folder}')
    assert code != 0
    flat = ' '.join(output.split())
    for word in words:
        assert word in flat


def test_precompiled_header_is_shared(package, torch, tmp_path):
    project = tmp_path / 'two'
    project.mkdir()
    (project / 'a.cpp').write_text('int main() {}\n')
    (project / 'CMakeLists.txt').write_text(
        'cmake_minimum_required(VERSION 3.25)\nproject(two CXX)\n'
        'find_package(cpprun REQUIRED COMPONENTS torch)\n'
        'add_executable(one a.cpp)\nadd_executable(two a.cpp)\n'
        'target_link_libraries(one PRIVATE cpprun::torch)\n'
        'target_link_libraries(two PRIVATE cpprun::torch)\n'
        'cpprun_precompile(one two)\n'
    )
    code, output = package.configure(project, project / 'build', f'-DLIBTORCH={torch}')
    assert code == 0, output
    rules = (project / 'build' / 'build.ninja').read_text()
    assert rules.count('pch.hxx.gch: CXX_COMPILER') == 1
    assert len(re.findall(r'-include \S*cpprun_pch\.dir/cmake_pch\.hxx', rules)) >= 2
