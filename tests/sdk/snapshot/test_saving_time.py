"""The agent counts the time in which a C++ training waits for its saves as saving."""

import pytest
from run_events import events_of_run


@pytest.mark.parametrize('how', ['save', 'maybe_save', 'by_other_means'])
def test_time_of_saves_is_saving(ranks, how):
    flags = (f'--log-dir={ranks.folder}/logs',)
    job = ranks.case('snapshot', 2, 'snapshot_saving', how, flags=flags).well()
    events = events_of_run(ranks.folder / 'logs')
    spent = [event['spent_ms'] for event in events if event['event'] == 'goodput'][-1]
    waited = [float(line.split()[3]) for line in job.lines('rank')]
    # Of the rank that is furthest ahead. A part of the first save may come before the agent knows
    # of the first step.
    assert 0.5 * min(waited) <= spent['saving'] <= 1.1 * max(waited) + 50
    assert spent['training'] < spent['saving']
