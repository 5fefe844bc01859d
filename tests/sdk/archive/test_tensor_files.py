"""Tensor files between C++ and Python: each reads the other's files, bit for bit; and cpprunctl's
snapshot commands. The Python side is twins/tensor_files.py, under the torch that is tested."""

import fcntl
import json
import os
import shutil
import subprocess
import zlib

import pytest
from launches import BIN
from long_tests import long
from sdk_ranks import Ranks

CASES = ('state_dict', 'training', 'values', 'dtypes', 'views')


class Files:
    def __init__(self, ranks):
        self.ranks, self.folder = ranks, ranks.folder

    def python(self, *words):
        return self.ranks.lone_twin('tensor_files.py', *words).well().out

    def ctl(self, *words):
        return self.ranks.run(BIN / 'cpprunctl', 'snapshot', *words)

    def ctl_json(self, *words):
        return json.loads(self.ctl(*words, '--json').well().out)

    def cut(self, path):
        os.truncate(self.folder / path, (self.folder / path).stat().st_size - 200)


@pytest.fixture
def files(ranks):
    return Files(ranks)


@pytest.fixture(scope='module')
def by_python(tmp_path_factory):
    """A folder with a file for each case, by Python."""
    folder = tmp_path_factory.mktemp('python')
    Files(Ranks(folder)).python('write', '.')
    return folder


@pytest.fixture
def written(files, by_python):
    """With copies of them."""
    shutil.copytree(by_python, files.folder, dirs_exist_ok=True)
    return files


def test_files_saved_by_python_are_read_and_written_again(written):
    pairs = [(f'{case}.pt', f'{case}-again.pt') for case in CASES]
    for saved, again in pairs:
        written.ctl('verify', saved).well()
        written.ctl('convert', saved, again).well()
    written.python('same', *(path for pair in pairs for path in pair))


def test_tensors_are_listed_as_python_sees_them(written):
    paths = [f'{case}.pt' for case in ('state_dict', 'training', 'dtypes', 'views')]
    for path, seen in zip(paths, json.loads(written.python('tensors', *paths))):
        listed = [
            [entry['name'], entry['dtype'], entry['shape']]
            for entry in written.ctl_json('ls', path)
            if entry['kind'] == 'tensor'
        ]
        assert listed == seen
    out = written.ctl('ls', 'training.pt').well().out
    assert 'MODEL_STATE/weight' in out and 'float32 [1, 20]' in out
    assert 'int 3' in out and 'module.' not in out


def test_safetensors_are_read_by_their_own_library(written):
    written.ctl('convert', 'state_dict.pt', 'model.safetensors').well()
    written.python('safetensors', 'state_dict.pt', 'model.safetensors')
    refused = written.ctl('convert', 'dtypes.pt', 'all.safetensors')
    assert refused.code == 1 and 'complex64' in refused.err
    assert not [path for path in written.folder.iterdir() if path.name.startswith('.all')]


def test_prefixes_are_stripped_once_and_only_if_all_names_have_them(files):
    files.python('prefixed', 'p.pt')
    files.ctl('convert', '--strip-prefix', 'module.', 'p.pt', 'q.pt').well()
    again = files.ctl('convert', '--strip-prefix', 'module.', 'q.pt', 'r.pt').well()
    assert 'none was changed' in again.err
    wanted = "['net.weight', 'module_list.0.weight', 'submodule.bias']"
    assert files.python('names', 'q.pt', 'r.pt').splitlines() == [wanted, wanted]


def test_more_than_four_gigabytes_open_in_python(files):
    files.ranks.run(BIN / 'sparse_tensor_file', 'sparse.pt').well()
    assert files.python('sparse', 'sparse.pt') == f'{5 * 2**30 + 3} 0 [97, 98, 99, 100]\n'
    assert 'uint8 [5368709123]' in files.ctl('ls', 'sparse.pt').well().out


@long  # writes 4 GiB
def test_more_than_four_gigabytes_of_python_are_read(files):
    try:
        files.python('big', 'big.pt')
        files.ctl('verify', 'big.pt').well()
        assert [e['shape'] for e in files.ctl_json('ls', 'big.pt')] == [[2**30 + 7], [5]]
    finally:
        (files.folder / 'big.pt').unlink(missing_ok=True)


def test_file_converts_to_a_folder_and_back(written):
    refused = written.ctl('convert', 'training.pt', 'runs')
    assert refused.code == 2 and '--step' in refused.err
    for step in (32, 96, 64):
        written.ctl('convert', 'training.pt', 'runs', '--step', step).well()
    shown = written.ctl_json('show', 'runs/step-96')
    assert [shown['step'], shown['epoch']] == [96, 3]
    assert [file['name'] for file in shown['files']] == ['model.pt', 'optim.pt']
    written.ctl('convert', 'runs/step-96', 'back.pt').well()
    inside, whole = json.loads(written.python('tensors', 'runs/step-96/model.pt', 'back.pt'))
    assert [name for name, _, _ in inside] == ['weight', 'bias']
    assert ['MODEL_STATE/weight', 'float32', [1, 20]] in whole
    back = {entry['name'] for entry in written.ctl_json('ls', 'back.pt')}
    assert {'MODEL_STATE/weight', 'EPOCHS_RUN', 'OPTIMIZER_STATE/state/0/exp_avg'} <= back


def test_part_of_a_snapshot_is_not_the_whole(written):
    written.ctl('convert', 'training.pt', 'runs', '--step', 8).well()
    step = written.folder / 'runs' / 'step-8'
    manifest = json.loads((step / 'manifest.json').read_text())
    manifest.update(world_size=3, elsewhere=['rank-0.pt', 'rank-2.pt'])
    shutil.copy(written.folder / 'values.pt', step / 'rank-1.pt')
    data = (step / 'rank-1.pt').read_bytes()
    own = {'name': 'rank-1.pt', 'bytes': len(data), 'crc32': f'{zlib.crc32(data):08x}'}
    manifest['files'].append(own)
    (step / 'manifest.json').write_text(json.dumps(manifest))

    refused = written.ctl('convert', 'runs/step-8', 'all.pt')
    assert refused.code == 1
    assert "other nodes' folders hold rank-0.pt, rank-2.pt. Copy" in refused.err
    assert not (written.folder / 'all.pt').exists()
    written.ctl('convert', 'runs/step-8', 'model.safetensors').well()
    for rank in (0, 2):
        shutil.copy(written.folder / 'values.pt', step / f'rank-{rank}.pt')
    written.ctl('convert', 'runs/step-8', 'all.pt').well()
    names = {entry['name'] for entry in written.ctl_json('ls', 'all.pt')}
    assert {f'RANKS/{rank}/bytes' for rank in range(3)} <= names


def lock_of_draft(folder, writer):
    """Whether the first draft with bytes is locked: its writer holds the lock by then."""
    while writer.poll() is None:
        for draft in folder.glob('.*.tmp'):
            try:
                with draft.open('rb') as file:
                    if os.fstat(file.fileno()).st_size > 0:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        return 'free'
            except FileNotFoundError:
                continue
            except BlockingIOError:
                return 'held'
    return 'not seen'


def test_converted_files_are_locked(files):
    files.python('big', 'big.pt', 2**24)  # 64 MiB: long enough to be observed
    words = [BIN / 'cpprunctl', 'snapshot', 'convert', 'big.pt', 'copy.pt']
    with subprocess.Popen(words, cwd=files.folder) as writer:
        assert lock_of_draft(files.folder, writer) == 'held'
    assert writer.returncode == 0


def test_newest_complete_snapshot_is_named(written):
    for step in (32, 64, 96):
        written.ctl('convert', 'training.pt', 'runs', '--step', step).well()
    assert written.ctl('latest', 'runs').well().out == 'runs/step-96/model.pt\n'
    assert written.ctl('latest', '--folder', 'runs').well().out == 'runs/step-96\n'
    written.ctl('verify', 'runs').well()
    written.cut('runs/step-96/model.pt')
    assert written.ctl('latest', 'runs').well().out == 'runs/step-64/model.pt\n'
    listed = written.ctl('ls', 'runs').well().out
    assert 'step-96  not complete: its file model.pt has' in listed
    bad = written.ctl('verify', 'runs')
    assert bad.code == 1 and '1 of 3 did not verify' in bad.err
    assert written.ctl('latest', 'nowhere').code == 1


def test_prune_keeps_the_newest(written):
    for step in (10, 20, 30, 40):
        written.ctl('convert', 'training.pt', 'runs', '--step', step).well()
    written.ctl('prune', 'runs', '--keep', 1, '--keep-every', 20).well()
    left = sorted(path.name for path in (written.folder / 'runs').iterdir())
    assert left == ['step-20', 'step-40']


@pytest.mark.parametrize(
    'words, message',
    [
        (('ls', 'gone.pt'), 'gone.pt: No such file or directory; check the path'),
        (('ls', 'text'), 'text is no whole tensor file'),
        (('verify', 'training.pt'), 'cut short'),
        (('show', 'step-7'), 'step-7 is not complete: it has no manifest.json'),
        (('convert', '.', 'x.pt'), 'name one of them'),
    ],
)
def test_errors_name_the_path_and_the_cure(written, words, message):
    (written.folder / 'text').write_text('no zip file')
    (written.folder / 'step-7').mkdir()
    written.cut('training.pt')
    ended = written.ctl(*words)
    assert ended.code in (1, 2) and message in ended.out + ended.err


def test_old_pickles_and_code_are_rejected(files):
    files.ranks.run('sh', '-c', 'echo "cposix\nsystem\n(S\'touch bad\'\ntR." > old.pt').well()
    assert 'no whole tensor file' in files.ctl('ls', 'old.pt').err
    assert not (files.folder / 'bad').exists()
