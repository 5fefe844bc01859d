"""Events that agents have written to events.jsonl in their log folders."""

import json


def events_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def events_of_run(logs):
    """Of the one run in a log folder."""
    (path,) = logs.glob('*/events.jsonl')
    return events_in(path)


def events_below(folder, name):
    """Those of this name of all agents below the folder, in the order of each file."""
    found = [event for path in folder.rglob('events.jsonl') for event in events_in(path)]
    return [event for event in found if event['event'] == name]
