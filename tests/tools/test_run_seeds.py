"""tools/run_seeds.py: it continues where it was stopped, for each tree."""

import json
import stat

import pytest
import run_seeds

FAILING = """#!/bin/sh
echo "$2" >>"$0.calls"
case "$2" in
10501:*) printf 'FAILED sim_run --seed 10777\\nplan\\n  S1: two worlds\\n'; exit 1 ;;
esac
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A fake simulator, and a folder for the record."""
    program = tmp_path / 'sim'
    program.write_text(FAILING)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    kept = tmp_path / 'seeds.txt'
    kept.write_text('# seeds\n')
    monkeypatch.setattr(run_seeds, 'STATES', tmp_path)
    monkeypatch.setattr(run_seeds, 'KEPT', kept)
    monkeypatch.setattr(run_seeds, 'commit', lambda: 'abc')
    monkeypatch.setattr(run_seeds, 'build', lambda tree: program)
    return tmp_path


def run(place, monkeypatch, tree, *args):
    monkeypatch.setattr(run_seeds, 'digest', lambda: tree)
    monkeypatch.setattr(run_seeds.sys, 'argv', ['run_seeds', *args])
    with pytest.raises(SystemExit) as end:
        run_seeds.main()
    return end.value.code, json.loads((place / 'seeds.json').read_text())


def test_failing_seed_is_kept_and_the_rest_runs(place, monkeypatch):
    code, state = run(place, monkeypatch, 'tree1', '--seeds', '1500')
    assert code == 1
    assert state['next'] == run_seeds.FIRST + 1500
    assert state['trees']['tree1']['seeds'] == 1500
    assert state['trees']['tree1']['failed'] == [10777]
    assert 'small 10777   S1: two worlds' in (place / 'seeds.txt').read_text()


def test_continues_until_the_wanted_number_ran_on_this_tree(place, monkeypatch):
    run(place, monkeypatch, 'tree1', '--seeds', '500')
    run(place, monkeypatch, 'tree2', '--seeds', '1000')
    code, state = run(place, monkeypatch, 'tree1', '--seeds', '1000')
    assert code == 0
    assert [each['seeds'] for each in state['trees'].values()] == [1000, 1000]
    calls = (place / 'sim.calls').read_text().splitlines()
    assert sorted(calls) == [f'{10_001 + 500 * i}:{10_500 + 500 * i}' for i in range(4)]


def test_duration_is_required(place, monkeypatch):
    monkeypatch.setattr(run_seeds.sys, 'argv', ['run_seeds'])
    with pytest.raises(SystemExit, match='give a limit'):
        run_seeds.main()
