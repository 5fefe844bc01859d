"""bench/recovery/run.py as a command: it still measures cpprun, with and without --preload and
elastic."""

import json
import subprocess
import sys

import pytest
from launches import BIN, ROOT, skip_unless_built
from torch_python import PYTHON

RUN = ROOT / 'bench' / 'recovery' / 'run.py'
ELASTIC = 'cpprun --preload + elastic'


@pytest.fixture(scope='module')
def quick(tmp_path_factory):
    """{row: {launcher: samples}} of a quick run without torchrun."""
    skip_unless_built()
    written = tmp_path_factory.mktemp('recovery') / 'run.json'
    done = subprocess.run(
        [sys.executable, RUN, '--quick', '--torchrun=', '--json', written],
        env={'CPPRUN_BIN': str(BIN), 'TORCH_PYTHON': str(PYTHON), 'PATH': '/usr/bin:/bin'},
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(written.read_text())


def test_every_row_is_measured(quick):
    rows = {row: samples for row, samples in quick.items() if not row.startswith('n = 1')}
    assert len(rows) == 2 + 3 * 4
    for row, samples in rows.items():
        is_of_all = row == 'bare loop, n = 2: crash to next step of all ranks, s'
        elastic = {ELASTIC} if is_of_all else set()
        assert set(samples) == {'cpprun', 'cpprun --preload'} | elastic, samples
        assert all(None not in values for values in samples.values()), samples


def test_survivors_need_less_time_than_a_restart_that_imports(quick):
    row = quick['bare loop, n = 2: crash to next step of all ranks, s']
    assert max(row[ELASTIC]) < min(row['cpprun'])


def test_forked_workers_import_nothing(quick):
    imports = quick['bare loop, n = 2: … imports, s']
    assert max(imports['cpprun --preload']) < min(imports['cpprun']) / 10
