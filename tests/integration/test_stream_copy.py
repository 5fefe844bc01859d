"""The copy of a save in cpprun_worker.Snapshot: by libcpprun_copy.so, and by torch without it."""

import json
import pathlib
import platform
import subprocess
import sys

import pytest
from launches import BIN, ROOT
from torch_python import COPY_LIBRARY, PYTHON, needs_torch

sys.path.insert(0, str(ROOT / 'packaging' / 'wheel'))
import build_wheel

pytestmark = [
    needs_torch,
    pytest.mark.skipif(platform.machine() != 'x86_64', reason='the library is for x86-64'),
    pytest.mark.skipif(BIN.name == 'checked', reason='the build of the loop check has none'),
]

SIZES = (0, 1, 63, 4095, 4096, 4097, 65536, 262143, 300_001, (4 << 20) + 3)
START = f"""
import json, sys, zlib
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch
from cpprun_worker._snapshot import state_pickle, stream_copy
torch.set_num_threads(1)
memory = torch.zeros((5 << 20) + 64, dtype=torch.uint8)
begin = -memory.data_ptr() % 64
source = torch.randint(256, (5 << 20,), dtype=torch.uint8)
writer = state_pickle.StateWriter()
writer.write(source)
def copied(size, at=0, from_at=3):
    memory.fill_(7)
    into = memory[begin + at : begin + at + size]
    crc, = stream_copy.copy(memory, [(writer.storages[0], from_at, size, begin + at)])
    assert torch.equal(into, source[from_at : from_at + size])
    assert (memory[: begin + at] == 7).all() and (memory[begin + at + size :] == 7).all()
    assert crc is None or crc == zlib.crc32(into.numpy().tobytes())
    return crc
"""


def run(code, **env):
    """(what the code has printed as JSON, stderr)"""
    command = [PYTHON, '-c', START + code]
    done = subprocess.run(  # noqa: S603
        command, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def processor_folds():
    flags = pathlib.Path('/proc/cpuinfo').read_text().split()
    return 'avx512f' in flags and 'vpclmulqdq' in flags


def test_the_library_copies_exactly_and_knows_the_crc32():
    code = f'print(json.dumps([[s, at, copied(s, at)] for s in {SIZES} for at in (0, 64, 1)]))'
    rows, err = run(code, CPPRUN_COPY_LIBRARY=str(COPY_LIBRARY))
    for size, at, crc in rows:
        is_known = processor_folds() and size >= 4096 and at % 64 == 0
        assert (crc is not None) == is_known, (size, at)
    assert len(rows) == 3 * len(SIZES) and not err


@pytest.mark.parametrize('library', [None, ''])
def test_without_the_library_torch_copies(library):
    env = {} if library is None else {'CPPRUN_COPY_LIBRARY': library}
    code = f'print(json.dumps([copied(size) for size in {SIZES}]))'
    assert run(code, **env) == ([None] * len(SIZES), '')


def test_with_several_threads_torch_copies_what_is_large():
    sizes = [65536, 2 << 20]
    code = f'torch.set_num_threads(2)\nprint(json.dumps([copied(size) for size in {sizes}]))'
    (small, large), err = run(code, CPPRUN_COPY_LIBRARY=str(COPY_LIBRARY))
    assert (small is not None, large, err) == (processor_folds(), None, '')


def test_parts_of_several_storages_are_copied_at_once():
    """Each to its place, and each with its own crc32."""
    code = """
sizes = [5, 70_000, 0, 4096, 2 << 20, 64]
tensors = [torch.randint(256, (size,), dtype=torch.uint8) for size in sizes]
writer = state_pickle.StateWriter()
writer.write(tensors)
memory.fill_(7)
parts, at = [], begin
for storage in writer.storages:
    parts.append((storage, 0, storage.size, at))
    at += -(-storage.size // 64) * 64 + 64
crcs = stream_copy.copy(memory, parts)
for (storage, _, size, place), crc in zip(parts, crcs, strict=True):
    assert torch.equal(memory[place : place + size], storage.tensor), size
    assert (memory[place + size : place + size + 64] == 7).all(), size
    assert crc is None or crc == zlib.crc32(storage.tensor.numpy().tobytes()), size
print(json.dumps([len(parts), [crc is not None for crc in crcs]]))
"""
    (count, is_known), err = run(code, CPPRUN_COPY_LIBRARY=str(COPY_LIBRARY))
    folds = processor_folds()
    # A tensor without elements has no part that matters, but a place among the storages.
    assert (count, is_known, err) == (6, [False, folds, False, folds, folds, False], '')


def test_a_library_that_cannot_be_loaded_is_reported_once(tmp_path):
    (tmp_path / 'text.so').write_text('text')
    for path in (tmp_path / 'text.so', tmp_path / 'missing.so'):
        shown, err = run(
            'print(json.dumps([copied(300_000), copied(5)]))', CPPRUN_COPY_LIBRARY=str(path)
        )
        assert shown == [None, None]
        assert err.count('cpprun: saves copy more slowly, by torch: ') == 1
        assert str(path) in err and err.count('\n') == 1


def test_the_library_needs_only_an_old_libc():
    """So one file serves the wheels for all versions of glibc."""
    assert build_wheel.newest_glibc([COPY_LIBRARY]) <= (2, 14)
    listed = subprocess.run(
        ['readelf', '-d', COPY_LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    needed = [line.split('[')[1].rstrip(']') for line in listed.splitlines() if 'NEEDED' in line]
    assert set(needed) <= {'libc.so.6', 'libm.so.6'}
