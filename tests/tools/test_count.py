"""bench/count.py: its failures."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench'))
import count


def test_up_to_a_tenth_more_is_accepted():
    assert count.compare({'a': 110}, {'a': 100}) == []


def test_more_than_a_tenth_is_rejected():
    (text,) = count.compare({'a': 111}, {'a': 100})
    assert 'a: 111 instructions, recorded are 100' in text


def test_parts_and_records_must_match():
    texts = count.compare({'new': 1}, {'old': 1})
    assert [text.split(':')[0] for text in texts] == ['new', 'old']


def test_work_per_node_does_not_grow_with_their_number():
    recorded = json.loads(count.RECORD.read_text())
    assert recorded['round_1000_nodes'] / 1000 < 1.05 * recorded['round_10_nodes'] / 10
