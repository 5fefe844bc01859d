"""Checkpoints of torch.distributed.checkpoint: the SDK reads what Python's ranks wrote."""

import pickle
import subprocess

import pytest
from torch_python import PYTHON

# Makes copies FOLDER-1, FOLDER-2 ... and runs a change in each. `metadata` is torch's Metadata,
# `places` the keys of its storage_data by name. One process, since importing torch takes long.
CHANGE = """
import datetime, pathlib, pickle, shutil, sys
for number, change in enumerate(sys.argv[2:], 1):
    folder = shutil.copytree(sys.argv[1], f'{sys.argv[1]}-{number}')
    path = pathlib.Path(folder, '.metadata')
    metadata = pickle.loads(path.read_bytes())
    places = {index.fqn: index for index in metadata.storage_data}
    exec(change)
    path.write_bytes(pickle.dumps(metadata))
"""
# Changes the first byte of the elements of a chunk, which is a zip file within a file.
FLIP = """
import io, struct, zipfile
place = metadata.storage_data[places['model.0.weight']]
file = pathlib.Path(folder, place.relative_path)
content = bytearray(file.read_bytes())
chunk = zipfile.ZipFile(io.BytesIO(content[place.offset : place.offset + place.length]))
(record,) = [each for each in chunk.infolist() if each.filename.endswith('/data/0')]
at = place.offset + record.header_offset
content[at + 30 + sum(struct.unpack('<HH', content[at + 26 : at + 30]))] ^= 1
file.write_bytes(content)
"""


def write(ranks, n, mode):
    """The folder with the checkpoint. The whole tensors are beside it."""
    ranks.twin(n, 'distributed_checkpoint.py', ranks.folder, mode).well()
    return ranks.folder / ('runs/step-3' if mode == 'snapshot' else 'checkpoint')


def compare(ranks, folder):
    """The lines about equal tensors, and those about objects."""
    words = ('dcp_compare', folder, ranks.folder / 'whole.safetensors')
    done = ranks.lone_case('snapshot', *words).well()
    assert not done.lines('DIFFERENT'), done.out
    equal = done.lines('equal ')
    assert f'{len(equal)} of {len(equal)}' in done.lines()
    return equal, done.lines('object ')


@pytest.mark.parametrize(('n', 'mode'), [(1, 'fsdp'), (2, 'fsdp'), (3, 'fsdp'), (2, 'snapshot')])
def test_tensors_are_whole(ranks, n, mode):
    equal, objects = compare(ranks, write(ranks, n, mode))
    assert 'equal model.0.weight float32 [33, 20]' in equal
    assert 'equal optimizer.state.0.weight.exp_avg float32 [33, 20]' in equal
    assert 'equal train.step int64 []' in equal
    assert 'object train.losses list' in objects
    assert 'object train.name str' in objects


@pytest.mark.parametrize('n', [1, 2, 4])
def test_all_placements_and_dtypes(ranks, n):
    equal, _ = compare(ranks, write(ranks, n, 'mesh'))
    assert len(equal) == 13 + 15 + (3 if n == 4 else 0)
    assert 'equal columns float32 [7, 5]' in equal
    assert 'equal complex64 complex64 [6, 2]' in equal
    assert 'equal empty float32 [0, 4]' in equal


FIND = 'import importlib.util as u; raise SystemExit(u.find_spec("torchtitan") is None)'
HAS_TORCHTITAN = subprocess.run([PYTHON, '-c', FIND], check=False, capture_output=True)


# torchtitan's manager, optimizers and schedulers around a model of FSDP2.
@pytest.mark.skipif(
    HAS_TORCHTITAN.returncode != 0,
    reason='only with tools/test.sh newest: torchtitan needs a newer torch',
)
@pytest.mark.parametrize('n', [1, 2, 3])
def test_checkpoints_of_torchtitan(ranks, n):
    ranks.twin(n, 'torchtitan_checkpoint.py', ranks.folder).well()
    equal, _ = compare(ranks, ranks.folder / 'checkpoint/step-1')
    assert 'equal 0.weight float32 [33, 20]' in equal
    assert 'equal optimizer.state.0.weight.exp_avg float32 [33, 20]' in equal
    assert 'equal train_state.ntokens_seen int64 []' in equal


# The files are links, as in a cache of downloaded files.
def test_loads_a_module_by_rules(ranks):
    folder = write(ranks, 2, 'fsdp')
    files = folder.rename(ranks.folder / 'files')
    folder.mkdir()
    for path in files.iterdir():
        (folder / path.name).symlink_to(path)
    done = ranks.lone_case('snapshot', 'dcp_load', folder, ranks.folder / 'whole.safetensors')
    assert done.well().lines() == [
        'batches 1', 'first 1', 'losses 2.5', 'norm 1', 'rate 0.25', 'second 1', 'turned 1',
    ]  # fmt: skip


def test_misfits_are_named(ranks):
    folder = write(ranks, 1, 'fsdp')
    lines = ranks.lone_case('snapshot', 'dcp_misfits', folder).well().lines()
    errors = dict(line.split(': ', 1) for line in lines if ': ' in line)
    assert 'missing: last.weight, last.bias' in errors['names']
    assert 'unexpected: model.4.bias, model.4.weight' in errors['names']
    assert 'optimizer' not in errors['names']
    shape = 'first.weight (in the file model.0.weight) ([33, 20] in the file, [34, 20] here)'
    assert 'of another shape: first.bias' in errors['shape'] and shape in errors['shape']
    assert 'untouched 1' in lines
    wide = 'last.bias (in the file model.4.bias) (float32 in the file, float64 here)'
    assert f'of another dtype: {wide}' in errors['exact']
    assert "no tensor's name begins with 'net.'" in errors['prefix']
    assert "load_distributed_checkpoint: the rule from '0.' to 'b.*'" in errors['rule']
    assert "it has no tensor 'nothing'" in errors['none']
    assert "tensor 'model.0.bias' has the shape [33], wanted is [3]" in errors['size']
    assert "it has no object 'model.0.bias', but a tensor" in errors['object']
    assert '/gone' in errors['absent']


# A change of `.metadata`, and the error that it causes.
CHANGES = [
    (FLIP, "__1_0.distcp: tensor 'model.0.weight' can't be loaded: record"),
    (
        "metadata.storage_data[places['model.0.weight']].length = 100",
        "tensor 'model.0.weight' has a chunk of 320 elements in 100 bytes",
    ),
    (
        "a, b = places['model.2.weight'], places['optimizer.state.0.weight.exp_avg']\n"
        'metadata.storage_data[a] = metadata.storage_data[b]',
        "tensor 'model.2.weight': a part has the shape [",
    ),
    (
        "metadata.storage_data[places['train.step']].relative_path = '../other'",
        "'train.step' is in '../other', which is no file of the checkpoint's folder",
    ),
    (
        "metadata.storage_data[places['train.step']].offset = 1 << 40",
        "tensor 'train.step' lies from byte 1099511627776",
    ),
    (
        "metadata.storage_data[places['train.step']].transform_descriptors = ['stream.zstd']",
        "'train.step' was written with extensions (transform_descriptors)",
    ),
    (
        "metadata.state_dict_metadata['model.2.bias'].chunks.pop()",
        "tensor 'model.2.bias' has 7 elements, but its chunks have ",
    ),
    (
        "metadata.state_dict_metadata['model.2.bias'].size = (1 << 62, 7)",
        "tensor 'model.2.bias' has more elements than memory can hold",
    ),
    ('metadata.planner_data = datetime.date(2026, 1, 1)', 'names datetime.date'),
]


def test_damage_is_named(ranks):
    folder = write(ranks, 2, 'fsdp')

    def error_of(of=folder):
        done = ranks.lone_case('snapshot', 'dcp_read', of)
        assert done.code != 0, done.out
        return done.err

    changes = [change for change, _ in CHANGES]
    ranks.run(PYTHON, '-c', CHANGE, folder, *changes).well()
    for number, (change, why) in enumerate(CHANGES, 1):
        assert why in error_of(f'{folder}-{number}'), change

    part, metadata = folder / '__1_0.distcp', folder / '.metadata'
    part.write_bytes(part.read_bytes()[:-1])
    assert f'{part}: it was cut short: it has ' in error_of()
    part.unlink()
    assert str(part) in error_of()
    whole = metadata.read_bytes()
    metadata.write_bytes(whole[: len(whole) // 2])
    assert f'{metadata}: pickle, at byte' in error_of()
    metadata.write_bytes(pickle.dumps(print))
    assert 'names builtins.print, which is none of those' in error_of()
    metadata.unlink()
    assert 'the folder has no .metadata' in error_of()
