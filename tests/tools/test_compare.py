"""bench/compare: reached goals, tables and the picture."""

import pathlib
import sys
import xml.etree.ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench' / 'compare'))
import curves
import plot
import report
import rows
from rows import FLOOR, OURS, THEIRS, Goal


def row_with(goal=None, **samples):
    row = rows.Row('start', 'a < b', 'ms', goal)
    for subject, values in samples.items():
        for value in values:
            row.add(subject, value)
    return row


@pytest.mark.parametrize(('ours', 'is_reached'), [(7.9, True), (8.0, True), (8.1, False)])
def test_goal_is_a_multiple_of_the_floor_plus_a_constant(ours, is_reached):
    row = row_with(Goal(floor=1.5, plus=5), cpprun=[ours], floor=[2.0])
    assert row.limit() == 8.0
    assert row.is_reached() is is_reached


def test_goal_may_be_a_fraction_of_torchs_value():
    row = row_with(Goal(theirs=0.5), cpprun=[6], torchrun=[10])
    assert row.is_reached() is False
    assert report.failure_summary(row) == "≤ 0.5 × torch's = 5: MISSED"


def test_larger_is_better_where_the_goal_is_a_minimum():
    goal = Goal(2, at_least=True)
    assert row_with(goal, cpprun=[2.1]).is_reached() is True
    assert row_with(goal, cpprun=[1.9]).is_reached() is False


def test_goal_without_its_floor_is_open():
    row = row_with(Goal(floor=2), cpprun=[1])
    assert row.is_reached() is None
    assert report.failure_summary(row) == '≤ 2 × floor'


def test_missing_measurement_is_no_number_and_no_success():
    row = row_with(Goal(1), cpprun=[None, 0.5, None], torchrun=[3])
    assert row.is_reached() is False
    assert row.ratio() is None
    assert '| none |' in report.table([row])


def test_one_bad_run_of_three_is_ignored():
    assert row_with(Goal(1), cpprun=[0.5, None, 0.7]).is_reached() is True


def test_ratio_is_torchs_value_to_ours():
    assert row_with(cpprun=[2, 4, 30], torchrun=[8, 8, 8]).ratio() == 2


@pytest.mark.parametrize(
    ('value', 'text'),
    [(0, '0'), (8, '8'), (0.01234, '0.0123'), (1.5, '1.50'), (99.96, '100.0'), (1234.5, '1,234')],
)
def test_numbers_have_three_digits(value, text):
    assert report.number(value) == text


def test_positions_in_the_picture():
    row = row_with(Goal(10), cpprun=[1], torchrun=[100], floor=[None])
    places = [plot.across(plot.distance(row, subject)) for subject in (OURS, THEIRS, FLOOR)]
    assert places[0] < plot.across(1) < places[1] < places[2]
    speed = row_with(Goal(2, at_least=True), cpprun=[4], torchrun=[0.2])
    assert plot.distance(speed, OURS) == pytest.approx(0.5)
    assert plot.distance(speed, THEIRS) == pytest.approx(10)


def test_picture_shows_each_row_with_a_goal():
    shown = row_with(Goal(10), cpprun=[1], torchrun=[100])
    made = plot.picture([shown, row_with(None, cpprun=[1]), row_with(Goal(0), cpprun=[1])])
    texts = [text.text for text in xml.etree.ElementTree.fromstring(made).iter() if text.text]
    assert sum('a < b' in text for text in texts) == 1
    assert made.count('cy="75"') == 2


def growth_of(values):
    growth = curves.Growth()
    for count, value in values.items():
        growth.add('CPU', 'a < b', count, row_with(cpprun=[value]))
    return growth


def test_scaling_rows_are_drawn_by_number_of_nodes():
    growth = growth_of({1000: 20.0, 10: 2.0, 100: 0, 316: None})
    assert growth.points('CPU') == {'a < b': [(10, 2.0), (1000, 20.0)]}
    root = xml.etree.ElementTree.fromstring(curves.picture(growth))
    lines = [shape for shape in root if shape.tag.endswith('polyline')]
    first, last = (tuple(map(float, p.split(','))) for p in lines[0].get('points').split())
    assert first[0] < last[0] and first[1] > last[1], 'to the right and up'


def test_linear_growth_is_a_flat_line():
    line = curves.picture(growth_of({10: 3.0, 100_000: 3.0})).split('points="')[1].split('"')[0]
    assert len({point.split(',')[1] for point in line.split()}) == 1


def test_empty_measurement_gives_a_picture():
    xml.etree.ElementTree.fromstring(curves.picture(curves.Growth()))
    xml.etree.ElementTree.fromstring(curves.picture(growth_of({10: None})))
