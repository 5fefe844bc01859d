"""tools/budget.py: what it measures, and when it fails."""

import json
import os
import pathlib
import re
import subprocess
import sys

import budget
import pytest

TEST_SH = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'test.sh'
CALIBRATION = {'cpu': 1.0, 'wall': 0.5}
STAGES = {'check': 200, 'integration': 600, 'e2e': 200}
MINUTE = 60 * budget.CORES  # core seconds of a gate that takes a minute longer


@pytest.fixture
def check(tmp_path, monkeypatch):
    """check(stage=(cpu, wait), ...): the stages that have grown too much."""
    record = tmp_path / 'budget.json'
    record.write_text(json.dumps({'calibration': {'stages': CALIBRATION}, 'stages': STAGES}))
    monkeypatch.setattr(budget, 'RECORD', record)
    monkeypatch.setattr(budget, 'STAGES', 'stages')

    def run(costs, slower=1.0, waits_longer=1.0, misses=0, failed=()):
        for name, (cpu, wait) in costs.items():
            speed = {'cpu': slower, 'wall': 0.5 * slower * waits_longer}
            cost = {'wall': 9, 'cpu': cpu, 'wait': wait, 'misses': misses, 'speeds': [speed] * 2}
            (tmp_path / f'{name}.cost').write_text(json.dumps(cost))
        return list(budget.check(tmp_path, failed))

    return run


AS_RECORDED = {'check': (150, 50), 'integration': (300, 300), 'e2e': (150, 50)}


def test_costs_as_recorded_pass(check):
    assert check(AS_RECORDED) == []


@pytest.mark.parametrize('stage', STAGES)
@pytest.mark.parametrize('kind', [0, 1], ids=['work', 'wait'])
def test_three_minutes_more_in_one_stage_fail(check, stage, kind):
    costs = {name: list(cost) for name, cost in AS_RECORDED.items()}
    costs[stage][kind] += 3 * MINUTE
    assert check(costs) == [stage]


@pytest.mark.parametrize('stage', STAGES)
def test_a_minute_more_in_one_stage_passes(check, stage):
    cpu, wait = AS_RECORDED[stage]
    assert check({**AS_RECORDED, stage: (cpu + MINUTE / 2, wait + MINUTE / 2)}) == []


def test_several_stages_share_what_is_allowed(check):
    costs = {name: (cpu + STAGES[name] / 4 + 50, wait) for name, (cpu, wait) in AS_RECORDED.items()}
    assert check(costs) == list(STAGES)


def test_stage_without_a_record_is_not_compared(check):
    assert check({**AS_RECORDED, 'new': (9999, 0)}) == []


@pytest.mark.parametrize('factor', [2, 5, 20])
def test_slow_machine_passes(check, factor):
    slow = {name: (factor * cpu, factor * wait) for name, (cpu, wait) in AS_RECORDED.items()}
    assert check(slow, slower=factor) == []


def test_prints_how_slow_the_machine_is(check, capsys):
    check(AS_RECORDED, slower=1.5)
    assert 'takes 1.50 times the CPU time of the reference machine' in capsys.readouterr().out


def test_machine_with_other_work_passes(check):
    """Nothing is idle there, and caches that are shared with others make work slower."""
    busy = {name: (1.4 * cpu, 0) for name, (cpu, _) in AS_RECORDED.items()}
    assert check(busy, slower=1.4, waits_longer=6) == []


def test_fast_machine_does_not_shrink_the_budget(check):
    assert check(AS_RECORDED, slower=0.2) == []


def test_three_minutes_of_work_fail_on_a_slow_machine_too(check):
    slow = {**AS_RECORDED, 'check': (150 + 3 * MINUTE, 50)}
    assert check({name: (3 * cpu, 3 * wait) for name, (cpu, wait) in slow.items()}, slower=3) == [
        'check'
    ]


def test_failed_stages_and_those_that_compiled_are_not_compared(check):
    costs = {**AS_RECORDED, 'e2e': (9999, 0)}
    assert check(costs) == ['e2e']
    assert check(costs, failed=['e2e']) == []
    assert check(costs, misses=1) == []


def test_compile_time_does_not_count(tmp_path):
    total = {'wall': 20, 'cpu': 30.0, 'wait': 5.0, 'misses': 4, 'speeds': [CALIBRATION]}
    part = {'wall': 15, 'cpu': 22.0, 'wait': 1.0, 'misses': 4, 'speeds': []}
    (tmp_path / 'check.cost').write_text(json.dumps(total))
    (tmp_path / 'check.compile.cost').write_text(json.dumps(part))
    tests = '<testsuite><testcase name="a"/><testcase name="b"/></testsuite>'
    (tmp_path / 'check.unit_tests.0.xml').write_text(tests)
    (cost,) = budget.read(tmp_path).values()
    assert {kind: cost[kind] for kind in ('cpu', 'wait', 'misses', 'compile', 'tests')} == {
        'cpu': 8, 'wait': 4, 'misses': 0, 'compile': 22, 'tests': 2
    }


def test_measures_the_work_of_a_stage(tmp_path):
    """A shell as test.sh: its children's CPU time counts, in the stage and in the part."""
    program = f'{sys.executable} {budget.__file__}'
    begin, end = (f'{program} {verb} {tmp_path}' for verb in ('begin', 'end'))
    burn = f'{sys.executable} -c "import time\nwhile time.process_time() < 0.3: pass"'
    script = f'{begin} s $$; {begin} s.compile $$; {burn}; {end} s.compile $$; {burn}; {end} s $$'
    done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, check=True)
    assert '=== s.compile: ' in done.stdout
    (cost,) = budget.read(tmp_path).values()
    assert cost['compile'] > 0.25
    assert cost['cpu'] > 0.25
    assert cost['wall'] > 0.5
    assert len(cost['speeds']) == 2


def test_waiting_is_time_of_one_of_two_cores_without_work():
    before = {'cpu': 1.0, 'busy': 100.0, 'misses': 0, 'wall': 50.0}
    after = {'cpu': 4.0, 'busy': 104.0, 'misses': 0, 'wall': 60.0}
    cores = min(2, len(os.sched_getaffinity(0)))
    assert budget.difference(before, after) == {
        'cpu': 3.0, 'misses': 0, 'wall': 10.0, 'wait': 10.0 * cores - 4.0
    }
    assert budget.difference(before, {**after, 'busy': 200.0})['wait'] == 0


@pytest.mark.parametrize('kind', ['stages', 'slow_stages'])
def test_record_finds_three_minutes_in_each_stage(kind):
    record = json.loads(budget.RECORD.read_text())
    stages = re.search(r'^stages=\(([^)]*)\)', TEST_SH.read_text(), re.M)[1].split()
    assert set(record[kind]) == set(stages) - {'deps', *budget.NOT_COMPARED}
    for name, cost in record[kind].items():
        if cost is not None:
            assert (budget.MARGIN - 1) * cost + budget.ALLOWED < 3 * MINUTE, name


def test_record_is_made_from_a_run(tmp_path, check):
    check(AS_RECORDED, slower=1.5)
    budget.record_costs(tmp_path)
    assert json.loads(budget.RECORD.read_text()) == {
        'calibration': {'stages': {'cpu': 1.5, 'wall': 0.75}}, 'stages': STAGES
    }


def test_record_with_the_slow_tests_is_another(check, monkeypatch, tmp_path):
    check({**AS_RECORDED, 'contract': (0, 0)}, slower=1.5)
    text = budget.RECORD.read_text()
    budget.RECORD.write_text(json.dumps({**json.loads(text), 'slow_stages': {'check': 9}}))
    monkeypatch.setattr(budget, 'STAGES', 'slow_stages')
    budget.record_costs(tmp_path)
    record = json.loads(budget.RECORD.read_text())
    assert record['stages'] == STAGES and record['slow_stages'] == STAGES
    assert record['calibration'] == {
        'stages': CALIBRATION, 'slow_stages': {'cpu': 1.5, 'wall': 0.75}
    }
