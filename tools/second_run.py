#!/usr/bin/env python3
"""Runs the failed tests of a GoogleTest program once more, each run of three tests at most.

    tools/second_run.py PROGRAM REPORT

REPORT.log is the output of the first run, REPORT.xml its JUnit file. If the tests pass now, their
failures are removed from REPORT.xml and their names printed. Exits 1 if a test fails again, if more
than three failed, or if the program did not end by itself.
"""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

MOST = 3  # more failures than that are no coincidence
FAILED = re.compile(r'^\[  FAILED  \] (\w+\.[\w/]+)', re.MULTILINE)
SECONDS = 600


def main():
    program, report = sys.argv[1:]
    log, results = pathlib.Path(report + '.log'), pathlib.Path(report + '.xml')
    names = sorted(set(FAILED.findall(log.read_text(errors='replace'))))
    if not names or len(names) > MOST or not results.exists():
        sys.exit(1)
    environment = {k: v for k, v in os.environ.items() if not k.startswith('GTEST_')}
    command = [program, '--gtest_filter=' + ':'.join(names)]
    try:
        second = subprocess.run(command, env=environment, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(1)
    if second.returncode != 0:
        sys.exit(1)
    tree = ElementTree.parse(results)
    for case in tree.iter('testcase'):
        for failure in case.findall('failure'):
            case.remove(failure)
    tree.write(results)
    print(f'=== {program}: passed only at the second run: {", ".join(names)}')


if __name__ == '__main__':
    main()
