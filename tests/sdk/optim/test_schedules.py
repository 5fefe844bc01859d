"""Learning rate schedules equal Python's, to the last digit, at each of 1,000 steps."""

import json

from schedule_settings import settings


def test_numbers_equal_pythons(ranks):
    all_settings = list(settings())
    path = ranks.folder / 'settings.jsonl'
    path.write_text(''.join(json.dumps(setting) + '\n' for setting in all_settings))
    ours = ranks.lone_case('optim', 'schedules', path, seconds=240).well().out.splitlines()
    pythons = ranks.lone_twin('schedules.py', path, seconds=240).well().out.splitlines()
    assert len(ours) == len(pythons)
    at = 0
    for setting in all_settings:
        behind = at + setting['steps'] + 1
        for step, (a, b) in enumerate(zip(ours[at:behind], pythons[at:behind])):
            assert a == b, f'{setting["schedule"]} {setting["optimizer"]}, step {step}'
        at = behind
    assert at == len(ours)
