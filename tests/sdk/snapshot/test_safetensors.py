"""Safetensors: the SDK reads the files of Python's library, and Python reads those of the SDK."""

import json
import struct

import pytest


@pytest.fixture
def files(ranks):
    """The folder with the twin's files, and the sums of the GPT's tensors as lines."""
    ranks.sums = ranks.lone_twin('safetensors_files.py', 'write', ranks.folder).well().lines()
    return ranks


@pytest.mark.parametrize('name', ['whole.safetensors', 'model.safetensors.index.json', '.'])
def test_reads_a_file_and_several_with_an_index(files, name):
    ours = files.lone_case('snapshot', 'safetensors_read', files.folder / name).well()
    assert ours.lines() == files.sums
    assert len(files.sums) == 13


def test_reads_all_dtypes(files):
    path = files.folder / 'dtypes.safetensors'
    lines = files.lone_case('snapshot', 'safetensors_describe', path).well().lines()
    assert 'bfloat16 bfloat16 [2, 3] 15' in lines
    assert 'bool bool [2, 3] 5' in lines
    assert 'uint16 uint16 [2, 3] 15' in lines
    assert 'float8_e5m2 float8_e5m2 [2, 3] 15' in lines
    assert 'scalar float32 [] 2.5' in lines
    assert 'empty float32 [0, 4] 0' in lines
    assert 'in the file still 15' in lines
    assert 'in memory 42' in lines


def test_loads_by_rules_and_python_reads_the_result(files):
    words = ('safetensors_load', files.folder / 'model.safetensors.index.json')
    lines = files.lone_case('snapshot', *words, files.folder / 'own.safetensors').well().lines()
    assert 'turned 1' in lines
    sums = dict(line.split() for line in lines if not line.startswith('turned'))
    published = dict(line.split() for line in files.sums)
    assert sums['embed.weight'] == sums['head_weight'] == published['wte.weight']
    assert sums['blocks.1.qkv.bias'] == published['h.1.attn.c_attn.bias']
    assert sums['blocks.0.norm.weight'] == published['h.0.ln_1.weight']  # was bfloat16

    read = files.lone_twin('safetensors_files.py', 'check', files.folder / 'own.safetensors')
    metadata = json.loads(read.well().lines('metadata')[0].removeprefix('metadata '))
    assert metadata == {'format': 'pt', 'embed.weight': 'head_weight'}
    assert f'head_weight torch.float32 [11, 8] {published["wte.weight"]}' in read.lines()
    assert len(read.lines()) == 1 + 11


def test_misfits_are_named(files):
    words = ('safetensors_misfits', files.folder / 'whole.safetensors')
    lines = files.lone_case('snapshot', *words).well().lines()
    errors = dict(line.split(': ', 1) for line in lines if ': ' in line)
    assert 'unexpected: ln_f.bias, ln_f.weight' in errors['names']
    assert 'missing: norm.weight, norm.bias' in errors['names']
    assert 'head_weight' not in errors['names']  # tied to a parameter that is loaded
    shape = 'embed.weight (in the file wte.weight) ([11, 8] in the file, [12, 8] here)'
    assert f'of another shape: {shape}' in errors['shape']
    assert 'untouched 1' in lines
    norm = 'blocks.0.norm.weight (in the file h.0.ln_1.weight) (bfloat16 in the file, float32 here)'
    assert f'of another dtype: {norm}' in errors['exact']
    counts = 'counts (in the file wte.weight) (float32 in the file, int64 here)'
    assert f'of another dtype: {counts}' in errors['dtype']
    assert "from 'h.' to 'b.*'" in errors['rule']
    assert "it has no tensor 'nothing'" in errors['none']
    assert 'cannot be opened' in errors['absent']


@pytest.mark.parametrize(
    ('change', 'why'),
    [
        (lambda data: data[:-1], 'lies from byte'),
        (lambda data: struct.pack('<Q', 1 << 60) + data[8:], 'at most 100000000'),
        (lambda data: data[:20], 'ends within its header'),
        (lambda _: b'', 'too short'),
    ],
)
def test_damaged_files_are_refused(files, change, why):
    path = files.folder / 'whole.safetensors'
    path.write_bytes(change(path.read_bytes()))
    refused = files.lone_case('snapshot', 'safetensors_read', path)
    assert refused.code != 0
    assert why in refused.err


def test_an_index_may_name_files_of_its_folder_only(files):
    index = files.folder / 'model.safetensors.index.json'
    index.write_text(json.dumps({'weight_map': {'a': '../secret.safetensors'}}))
    refused = files.lone_case('snapshot', 'safetensors_read', index)
    assert "'a' has no file of the same folder" in refused.err
    index.write_text(json.dumps({'weight_map': {'a': 'whole.safetensors'}}))
    refused = files.lone_case('snapshot', 'safetensors_read', index)
    assert "tensor 'a' is not in whole.safetensors" in refused.err
