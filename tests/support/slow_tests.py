"""A plugin of pytest: leaves out the tests that tests/slow.txt names, unless CPPRUN_SLOW is set.

An entry is a test, all variants of a test, a file or a folder. The tests that are left out are
listed in a file beside that of --junit-xml, whose name ends with `.slow`, for tools/summary.py.
"""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / 'tests' / 'slow.txt'


def entries():
    lines = (line.partition('#')[0].strip() for line in LIST.read_text().splitlines())
    return [line for line in lines if line]


def is_named(test, entry):
    return test.startswith(entry) and test[len(entry) :][:1] in ('', '[', ':', '/')


def pytest_collection_modifyitems(config, items):
    if os.environ.get('CPPRUN_SLOW'):
        return
    slow, kept, left_out = entries(), [], {}
    for item in items:
        place = pathlib.Path(os.path.relpath(item.path, ROOT))
        test = '::'.join([str(place), *item.nodeid.split('::')[1:]])
        if any(is_named(test, entry) for entry in slow):
            left_out[test] = item
        else:
            kept.append(item)
    if not left_out:
        return
    items[:] = kept
    config.hook.pytest_deselected(items=list(left_out.values()))
    report = config.getoption('xmlpath', None)
    worker = getattr(config, 'workerinput', {}).get('workerid', 'gw0')
    if report and worker == 'gw0':  # all workers of xdist leave out the same tests
        pathlib.Path(report).with_suffix('.slow').write_text('\n'.join(left_out) + '\n')
