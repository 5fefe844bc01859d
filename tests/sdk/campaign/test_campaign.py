"""A training job under random faults: eight, or CAMPAIGN_FAULTS (tools/test.sh campaign)."""

import os

import pytest
from campaign import missed_targets, run
from campaign_cluster import TRAINING, why_not
from campaign_plan import make_plan

SHORT = 8
FAULTS = int(os.environ.get('CAMPAIGN_FAULTS', SHORT))
SEED = 1


def test_a_seed_is_a_plan():
    assert make_plan(7, 200) == make_plan(7, 200) != make_plan(8, 200)


def test_a_training_outlives_what_strikes_it(tmp_path):
    if not TRAINING.exists():
        pytest.skip(f'{TRAINING.name} is not built')
    if why := why_not():
        pytest.skip(why)
    wrong, strikes = run(tmp_path, FAULTS, SEED)
    assert not wrong, '\n'.join(wrong)
    assert len(strikes) == FAULTS
    if FAULTS > SHORT:  # a few, beside other tests, say nothing about times
        assert not missed_targets(strikes)
