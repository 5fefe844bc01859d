"""tools/mutants.py: its table."""

import subprocess

import mutants
import pytest


@pytest.mark.parametrize(
    ('sentence', 'check'),
    [
        ('S1: workers of round 1 live beside those of round 2', 'S1'),
        ('R13: round 4 of term 2000: restarts that agents know of are forgotten', 'R13'),
        ('round 1 of term 1000: group ranks have a gap', 'ranks'),
        ('store: a wait is answered by something else', 'store'),
        ('excluded: n3 is placed in a round', 'excluded'),
        ('links: n3 is placed in a round', 'links'),
        ('the same seed gave two different runs', 'same-run'),
        ('it ends with -6: terminate called', 'other'),
    ],
)
def test_sentence_belongs_to_a_check(sentence, check):
    assert mutants.check_of(sentence) == check


class Known:
    """A record with the given results."""

    tree = '0123456789ab'

    def __init__(self, found):
        self.found = found

    def get(self, path):
        return self.found.get(path.stem)


@pytest.fixture
def paths(tmp_path):
    return [tmp_path / f'{name}.patch' for name in ('a', 'b')]


def test_all_found(paths, capsys):
    found = {'seed': 7, 'what': ['S1: two worlds', 'R2: too early']}
    assert mutants.print_table(paths, Known({'a': found, 'b': found})) == 0
    text = capsys.readouterr().out
    assert 'seed    7, by R2 S1: S1: two worlds' in text
    assert '2 mutants, 2 found, 0 not found, 0 not tried' in text
    assert ' S1' not in text.split('checks that found no mutant:')[1]


def test_found_by_a_scenario(paths, capsys):
    output = (
        'tests/scenarios/good.txt:12: the transcript differs\n  expected: a\n  found:    b\n'
        'tests/scenarios/bad.txt: R16: a second leader\n'
        'tests/scenarios/bad.txt:3: the transcript differs\n'
        '2 scenarios, 2 failed\n'
    )
    ((path, sentence),) = mutants.BROKEN_IN_SCENARIO.findall(output)
    found = {'scenario': path, 'what': [sentence]}
    assert mutants.print_table(paths, Known({'a': found, 'b': found})) == 0
    assert ' tests/scenarios/bad, by R16: R16: a second leader' in capsys.readouterr().out


def test_one_missed_mutant_fails(paths, capsys):
    known = Known({'a': {'missed': 'not found within 2000 seeds'}})
    assert mutants.print_table(paths, known) == 1
    assert 'MISSED a' in capsys.readouterr().out


def test_unchecked_mutants_are_reported(paths, capsys):
    assert mutants.print_table(paths, Known({'a': {'seed': 1, 'what': ['L2: b']}})) == 3
    assert 'b                                              not tried' in capsys.readouterr().out


def test_copy_follows_the_project(project, tmp_path, monkeypatch):
    root = project({'root/kept.cpp': 'new', 'root/added.cpp': 'x'})
    tree = root / 'tree'
    listing = 'kept.cpp\ngone.cpp'
    project({'tree/kept.cpp': 'old', 'tree/gone.cpp': 'y', 'tree/build/files': listing})
    monkeypatch.setattr(mutants, 'ROOT', root / 'root')
    mutants.subprocess.run(['git', 'init', '-q', root / 'root'], check=True)
    mutants.sync(tree)
    assert (tree / 'kept.cpp').read_text() == 'new'
    assert (tree / 'added.cpp').exists()
    assert not (tree / 'gone.cpp').exists()


def applies(path):
    command = ['git', 'apply', '--check', '-C1', path]  # one line of context, as patch(1) needs
    return subprocess.run(command, cwd=mutants.ROOT, capture_output=True).returncode == 0


def test_all_mutants_apply():
    patches = sorted(mutants.PATCHES.glob('*.patch'))
    assert patches
    assert [path.stem for path in patches if not applies(path)] == []
