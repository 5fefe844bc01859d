"""The C++ examples from a user's point of view; the acceptance commands are in tests/conformance.
"""

import json
import re
import struct
import zlib

import pytest
from conftest import ROOT
from launches import BIN

README = (ROOT / 'examples' / 'README.md').read_text()
ROWS = re.findall(r'^\| \[`(ex_\w+)`\].*\| `(.*)` \|$', README, re.M)
EPOCHS = 6
LABELS = 11


@pytest.fixture(autouse=True)
def built():
    if not (BIN / 'ex_digits').exists():
        pytest.skip('the C++ examples are not built')


def cpprun_with(nproc, name, *args, flags=()):
    return ['cpprun', '--standalone', f'--nproc_per_node={nproc}', *flags, BIN / name, *args]


@pytest.mark.parametrize('command', [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_commands_of_the_readme(cpprun, tmp_path, command):
    for name, _ in ROWS:
        (tmp_path / name).symlink_to(BIN / name)
    script = command.replace('/tmp/', f'{tmp_path}/')
    code, output = cpprun.run('bash', '-euo', 'pipefail', '-c', script)
    assert code == 0, output
    assert cpprun.wait_until_gone() == []


def test_readme_has_every_example():
    sources = {path.stem for path in (ROOT / 'examples' / 'cpp').glob('ex_*.cpp')}
    assert {row[0] for row in ROWS} == sources


@pytest.mark.parametrize('name', [row[0] for row in ROWS if row[0] != 'ex_launch_args'])
def test_help_and_usage_errors(cpprun, name):
    code, output = cpprun.run(name, '--help')
    assert code == 0 and '--help' in output, output
    code, output = cpprun.run(name, '--no-such-option')
    assert code == 2 and '--no-such-option' in output, output


def test_launch_json_is_json():
    configurations = json.loads((ROOT / 'examples' / 'vscode' / 'launch.json').read_text())
    names = [each['name'] for each in configurations['configurations']]
    assert all(set(each['configurations']) <= set(names) for each in configurations['compounds'])


# --- digits: real data, and workers that die


def digits(*options, env=None):
    return cpprun_with(2, 'ex_digits', '--epochs', EPOCHS, *options, flags=['--max_restarts=3'])


def accuracy(output):
    return float(re.search(r'test accuracy ([0-9.]+) %', output)[1])


def parameters(output):
    return re.search(r'\] parameters (\w+)', output)[1]


def test_digits_are_learned_in_spite_of_a_killed_worker(cpprun):
    code, undisturbed = cpprun.run(*digits('--snapshot', 'a.pt'))
    assert code == 0, undisturbed
    for rank in (0, 1):
        fault = {'CPPRUN_FAULTS': f'kill:rank={rank},epoch=3,attempt=0'}
        code, output = cpprun.run(*digits('--snapshot', f'killed-{rank}.pt'), env=fault)
        assert code == 0, output
        assert output.count('resuming from snapshot') == 1
        assert re.search(rf'resuming from snapshot \S+: 3 of {EPOCHS}', output)
        assert parameters(output) == parameters(undisturbed)
        assert output.count('started as process') == 4  # both ranks, twice
    assert cpprun.wait_until_gone() == []


def test_digits_reach_97_percent(cpprun):
    code, output = cpprun.run(*cpprun_with(2, 'ex_digits'))
    assert code == 0, output
    assert accuracy(output) >= 97


@pytest.mark.parametrize(
    'command', [['ex_digits'], ['torchrun', '--standalone', '--nproc_per_node=2', '--no_python']]
)
def test_digits_need_no_cpprun(launches, command):
    if len(command) > 1:
        command = [*command, BIN / 'ex_digits']
    code, output = launches.run(*command, '--epochs', EPOCHS)
    assert code == 0, output
    assert accuracy(output) >= 95


@pytest.mark.parametrize('broken', [b'', b'\x1f\x8b\x08\x00garbage', None])
def test_digits_name_a_broken_file(cpprun, tmp_path, broken):
    path = tmp_path / 'd.csv.gz'
    if broken is not None:
        path.write_bytes(broken)
    code, output = cpprun.run('ex_digits', '--data', path)
    assert code != 0
    assert str(path) in output


# --- toy trainer: a resumed regression equals an undisturbed one


def test_toy_trainer_resumes_to_the_same_bits(cpprun, tmp_path):
    results = []
    for name, env in (('a', {}), ('b', {'CPPRUN_FAULTS': 'kill:rank=1,epoch=3,attempt=0'})):
        (tmp_path / name).mkdir()
        options = ('--task', 'regression', '--total-epochs', 6, '--save-every', 1, '--hash')
        command = cpprun_with(2, 'ex_toy_trainer', *options, flags=['--max_restarts=1'])
        code, output = cpprun.run(*command, env=env, folder=tmp_path / name)
        assert code == 0, output
        assert ('Resuming training' in output) == (name == 'b')
        results.append(re.findall(r'^hash=\w+$', output, re.M)[-1])
    assert results[0] == results[1]


# --- X-rays

RANZCR = ('--image-size', 32, '--batch-size', 16)


def validation(output):
    return re.findall(r'^Validation loss=(\S+) AUC=(\S+)$', output, re.M)


@pytest.fixture
def xrays(cpprun, tmp_path):
    folder = tmp_path / 'xrays'
    code, output = cpprun.run(
        *('ex_ranzcr', '--synthetic', 90, '--image-size', 40, '--write-data', folder)
    )
    assert code == 0, output
    return folder


def test_xrays_are_learned(cpprun):
    options = ('--synthetic', 400, '--epochs', 6, *RANZCR)
    code, output = cpprun.run(*cpprun_with(2, 'ex_ranzcr', *options), seconds=150)
    assert code == 0, output
    scores = validation(output)
    assert len(scores) == 6
    assert float(scores[-1][1]) > 0.65, scores
    assert float(scores[-1][0]) < float(scores[0][0])


def test_xrays_from_a_folder_and_resumed_from_a_model(cpprun, xrays, tmp_path):
    png(xrays)
    code, output = cpprun.run(*cpprun_with(2, 'ex_ranzcr', '--data', xrays, *RANZCR))
    assert code == 0, output
    trained = validation(output)
    options = ('--data', xrays, '--fine-tune', 'model.pt', '--eval-only', *RANZCR)
    for nproc in (1, 2, 3):
        code, output = cpprun.run(*cpprun_with(nproc, 'ex_ranzcr', *options))
        assert code == 0, output
        assert validation(output) == trained


def png(folder):
    """Makes one of the images a colour PNG."""
    image = sorted((folder / 'train').iterdir())[0]
    image.unlink()

    def chunk(name, data):
        checked = name + data
        return struct.pack('>I', len(data)) + checked + struct.pack('>I', zlib.crc32(checked))

    rows = b''.join(b'\0' + bytes(range(60)) for _ in range(20))
    head = struct.pack('>IIBBBBB', 20, 20, 8, 2, 0, 0, 0)
    chunks = chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
    image.with_suffix('.png').write_bytes(b'\x89PNG\r\n\x1a\n' + chunks)


def auc(scores, labels):
    """Correctly ordered pairs, counted one by one."""
    pairs = [(a, b) for a, x in zip(scores, labels) for b, y in zip(scores, labels) if x > y]
    return sum(1 if a > b else 0.5 if a == b else 0 for a, b in pairs) / len(pairs)


def test_auc_covers_all_predictions(cpprun, tmp_path):
    options = ('--synthetic', 97, '--eval-only', '--predictions', 'p.csv', *RANZCR)
    code, output = cpprun.run(*cpprun_with(3, 'ex_ranzcr', *options))
    assert code == 0, output
    rows = [
        [float(word) for word in line.split(',')]
        for line in (tmp_path / 'p.csv').read_text().splitlines()
    ]
    columns = list(zip(*rows))
    assert len(columns) == 2 * LABELS
    scored = [
        auc(columns[i], columns[i + LABELS])
        for i in range(LABELS)
        if len(set(columns[i + LABELS])) == 2
    ]
    assert abs(sum(scored) / len(scored) - float(validation(output)[0][1])) < 6e-5


@pytest.mark.parametrize('how', ['missing', 'cut off', 'empty', 'text'])
def test_bad_image_is_named(cpprun, xrays, how):
    image = sorted((xrays / 'train').iterdir())[5]
    body = {'cut off': image.read_bytes()[:-200], 'empty': b'', 'text': b'no image'}
    if how == 'missing':
        image.unlink()
    else:
        image.write_bytes(body[how])
    options = ('--data', xrays, '--train-size', 0.5, *RANZCR)
    code, output = cpprun.run(*cpprun_with(2, 'ex_ranzcr', *options))
    assert code == 1, output
    assert str(image) in output


@pytest.mark.parametrize(
    'line, text', [('a,1', '2 fields'), ('a' + ',2' * LABELS + ',p', "'2' is neither 0 nor 1")]
)
def test_bad_row_is_named(cpprun, xrays, line, text):
    with open(xrays / 'train.csv', 'a') as file:
        file.write(line + '\n')
    code, output = cpprun.run('ex_ranzcr', '--data', xrays)
    assert code == 1
    assert f'{xrays}/train.csv:92' in output and text in output
