"""A plugin of pytest for tools/test.sh: leaves out the tests of other runs of it.

Without CPPRUN_SLOW these are the slow tests, which tests/slow.txt names: an entry is a test, all
variants of a test, a file or a folder. Also tests whose mark `skipif` holds and has a reason like
`only with tools/test.sh --all` (long_tests.py) or `only with tools/test.sh STAGE`.

A file beside that of --junit-xml, whose name ends with `.left_out`, has a line for each,
`ARGUMENT-OF-TEST.SH TEST`, for tools/summary.py. By itself pytest runs the slow tests and skips the
others with their reason.
"""

import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / 'tests' / 'slow.txt'
REASON = re.compile(r'only with tools/test\.sh ([\w-]+)')


def entries():
    lines = (line.partition('#')[0].strip() for line in LIST.read_text().splitlines())
    return [line for line in lines if line]


def is_named(test, entry):
    return test.startswith(entry) and test[len(entry) :][:1] in ('', '[', ':', '/')


def runs_with(item, test, slow):
    """The argument of tools/test.sh that includes the test; None: it runs now."""
    for mark in item.iter_markers('skipif'):
        found = REASON.match(mark.kwargs.get('reason', ''))
        if found and mark.args[0]:
            return found[1]
    if not os.environ.get('CPPRUN_SLOW') and any(is_named(test, entry) for entry in slow):
        return '--slow'
    return None


def pytest_collection_modifyitems(config, items):
    slow, kept, left_out, lines = entries(), [], [], []
    for item in items:
        place = pathlib.Path(os.path.relpath(item.path, ROOT))
        test = '::'.join([str(place), *item.nodeid.split('::')[1:]])
        if argument := runs_with(item, test, slow):
            left_out.append(item)
            lines.append(f'{argument} {test}\n')
        else:
            kept.append(item)
    if not left_out:
        return
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
    report = config.getoption('xmlpath', None)
    worker = getattr(config, 'workerinput', {}).get('workerid', 'gw0')
    if report and worker == 'gw0':  # all workers of xdist leave out the same tests
        pathlib.Path(report).with_suffix('.left_out').write_text(''.join(lines))
