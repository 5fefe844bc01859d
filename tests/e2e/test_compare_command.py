"""bench/compare/run.py as a command: every suite still measures cpprun."""

import json
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from launches import BIN, ROOT, skip_unless_built

RUN = ROOT / 'bench' / 'compare' / 'run.py'
SUITES = {'start', 'respawn', 'footprint', 'orphans', 'elastic', 'scale', 'output', 'store'}


def compare(*args, seconds=120):
    return subprocess.run(
        [sys.executable, RUN, '--bin', BIN, *args],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


@pytest.fixture(scope='module')
def quick(tmp_path_factory):
    """(the command's end, its JSON, its picture) of all suites, without torchrun."""
    skip_unless_built()
    folder = tmp_path_factory.mktemp('compare')
    written = folder / 'run.json', folder / 'run.svg'
    growth = ['--growth', folder / 'growth.svg']
    done = compare('--quick', '--torchrun=', '--json', written[0], '--plot', written[1], *growth)
    assert done.returncode == 0, done.stderr
    drawn = xml.etree.ElementTree.parse(folder / 'growth.svg').getroot()
    assert [shape for shape in drawn if shape.tag.endswith('circle')]
    return done, json.loads(written[0].read_text()), written[1].read_text()


def test_every_suite_measures_cpprun(quick):
    _, found, _ = quick
    assert {row['suite'] for row in found['rows']} == SUITES
    for row in found['rows']:
        assert row['samples']['cpprun'], row
        assert None not in row['samples']['cpprun'], row


def test_floors_are_of_the_same_run(quick):
    _, found, _ = quick
    with_floor = {row['suite'] for row in found['rows'] if 'floor' in row['samples']}
    assert with_floor == {'start', 'respawn', 'output', 'store'}


def test_load_independent_goals_are_reached(quick):
    _, found, _ = quick
    sure = [row for row in found['rows'] if row['goal'] == '≤ 0']
    assert {row['suite'] for row in sure} == {'footprint', 'orphans', 'output'}
    for row in sure:
        assert row['reached'] or row['suite'] == 'footprint', row


def test_tables_and_picture_show_the_rows(quick):
    done, found, picture = quick
    for row in found['rows']:
        assert f'| {row["case"]} |' in done.stdout
    shapes = list(xml.etree.ElementTree.fromstring(picture))
    assert len(shapes) > len(found['rows'])


def test_unknown_suite_is_named():
    done = compare('--only', 'start,nonsense')
    assert done.returncode == 2
    assert 'nonsense' in done.stderr


def test_older_build_takes_the_place_of_torch(tmp_path):
    written = tmp_path / 'run.json'
    older = ('--before', BIN, '--only', 'start,store', '--json', written)
    done = compare('--quick', *older)
    assert done.returncode == 0, done.stderr
    rows = json.loads(written.read_text())['rows']
    assert all({'cpprun', 'torchrun'} <= row['samples'].keys() for row in rows)
    assert 'in the place of torch an older build: cpprun' in done.stdout
