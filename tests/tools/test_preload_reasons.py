"""tools/preload_reasons.py: which reasons fail stage contract_preload."""

import json
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / 'tools' / 'preload_reasons.py'


def run(folder, *reasons):
    """None: forked."""
    events = [{'event': 'run_started'}]
    for reason in reasons:
        events.append({'event': 'worker_started', 'is_forked': reason is None})
        if reason:
            events[-1]['spawned_because'] = reason
    path = folder / 'run' / 'events.jsonl'
    path.parent.mkdir()
    path.write_text('\n'.join(map(json.dumps, events)) + '\n{"event": "worker_st')
    done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_reasons_of_the_job_pass(tmp_path):
    code, output = run(tmp_path, None, None, 'script', 'interpreter', 'not_python', 'debugger')
    assert code == 0, output
    assert output.startswith('workers: forked 2, script 1')


@pytest.mark.parametrize('reason', ['module', 'process', 'fork', 'no_preload', 'other'])
def test_failures_do_not(tmp_path, reason):
    code, output = run(tmp_path, None, reason)
    assert code == 1
    assert f'run/events.jsonl: a worker was spawned: {reason}' in output


def test_nothing_forked_fails(tmp_path):
    assert run(tmp_path, 'script')[0] == 1
