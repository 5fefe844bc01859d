"""A training job under random faults: eight, or CAMPAIGN_FAULTS (tools/test.sh campaign)."""

import os

import pytest
from campaign import missed_targets, run
from campaign_cluster import TRAINING, why_not
from campaign_plan import make_plan

SHORT = 8
FAULTS = int(os.environ.get('CAMPAIGN_FAULTS', SHORT))
SEED = 1


def test_seed_determines_the_plan():
    assert make_plan(7, 200) == make_plan(7, 200) != make_plan(8, 200)


def test_training_survives_its_faults(tmp_path):
    if not TRAINING.exists():
        pytest.skip(f'{TRAINING.name} is not built')
    if why := why_not():
        pytest.skip(why)
    wrong, injected = run(tmp_path, FAULTS, SEED)
    assert not wrong, '\n'.join(wrong)
    assert len(injected) == FAULTS
    if FAULTS > SHORT:  # a few faults, beside other tests, give no meaningful times
        assert not missed_targets(injected, times=2)  # campaign.py itself is strict: it runs alone
