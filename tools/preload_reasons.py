#!/usr/bin/env python3
"""Checks how the workers of a test run with --preload were started.

  preload_reasons.py FOLDER...     # with the events.jsonl of jobs, in whatever depth

Prints the number of forked workers, and of spawned ones by reason. Fails if a worker was spawned
for a reason that docs/how-to/preload.md does not list under "Because of the job itself", or if
none was forked.
"""

import collections
import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / 'docs' / 'how-to' / 'preload.md'


def allowed_reasons(page):
    table = re.search(r'^Because of the job itself.*?\n\n(\|.*?)\n\n', page, re.S | re.M)[1]
    return set(re.findall(r'^\| `(\w+)` ', table, re.M))


def starts(folder):
    """(file, reason) of each worker; the reason of a forked one is "forked"."""
    for path in sorted(folder.rglob('events.jsonl')):
        for line in path.read_text(errors='replace').splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the agent was killed while it wrote
            if event.get('event') == 'worker_started':
                is_forked = event.get('is_forked')
                yield path, 'forked' if is_forked else event.get('spawned_because', 'no_preload')


def main(folders):
    allowed = allowed_reasons(PAGE.read_text()) | {'forked'}
    counts = collections.Counter()
    bad = []
    for path, reason in (start for folder in folders for start in starts(pathlib.Path(folder))):
        counts[reason] += 1
        if reason not in allowed:
            bad.append(f'{path}: a worker was spawned: {reason}')
    print('workers:', ', '.join(f'{reason} {number}' for reason, number in counts.most_common()))
    print('\n'.join(bad), end='\n' if bad else '')
    if not counts['forked']:
        print('no worker was forked')
    return 1 if bad or not counts['forked'] else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
