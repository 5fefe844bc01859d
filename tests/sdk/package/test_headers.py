"""The public headers: each compiles on its own, and those of dist and worker stay thin."""

import os
import re

import pytest
from installed import torch_folder

INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.M)
# The LibTorch headers allowed in a thin header: 1.3 s instead of 11.
THIN = {'ATen/core/Tensor.h', 'c10/core/Device.h'}
HEAVY = {'cpprun/dist/native.hpp'}


def headers(package, part):
    found = sorted((package.include / 'cpprun' / part).rglob('*.hpp'))
    assert found, f'no headers of {part}'
    return [str(path.relative_to(package.include)) for path in found]


def included(package, header):
    for folder in (package.include, package.include / 'cpprun-internal'):
        if (folder / header).is_file():
            return INCLUDE.findall((folder / header).read_text())
    return pytest.fail(f'{header} is not installed')


def reached(package, header):
    """This header and all of our headers that it includes."""
    seen, pending = set(), [header]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [other for quote, other in included(package, name) if quote == '"']
    return seen


def of_libtorch(package, header):
    """LibTorch headers that a header includes, directly or through others of ours."""
    names = (name for own in reached(package, header) for _, name in included(package, own))
    return {name for name in names if re.match(r'(torch|ATen|c10|caffe2)/', name)}


def test_headers_of_worker_include_no_libtorch(package):
    for header in ['cpprun/worker.hpp', *headers(package, 'worker')]:
        assert not of_libtorch(package, header), header


def test_headers_of_dist_are_thin(package, torch):
    for header in set(headers(package, 'dist')) - HEAVY:
        assert of_libtorch(package, header) <= THIN, header


def test_headers_of_umbrellas_are_installed(package, torch):
    assert len(reached(package, 'cpprun/torch.hpp')) > 20


def compile_alone(package, header, *includes):
    flags = ('-std=c++20', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-DUSE_DISTRIBUTED')
    own = ('-I', package.include, '-I', package.include / 'cpprun-internal')
    system = [word for folder in includes for word in ('-isystem', folder)]
    source = package.prefix / (header.replace('/', '_') + f'.{os.getpid()}.cpp')
    source.write_text(f'#include "{header}"\nint main() {{}}\n')
    return package.run('g++', *flags, *own, *system, source)


def test_each_header_of_worker_compiles_alone(package):
    for header in ['cpprun/worker.hpp', *headers(package, 'worker')]:
        code, output = compile_alone(package, header)
        assert code == 0, output


def test_each_thin_header_of_dist_compiles_alone(package, torch):
    include = torch_folder() / 'include'
    for header in sorted(set(headers(package, 'dist')) - HEAVY):
        code, output = compile_alone(package, header, include)
        assert code == 0, output
