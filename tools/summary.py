#!/usr/bin/env python3
"""Summarizes a test run: reads JUnit files and lists failed and skipped tests with the reasons.

    tools/summary.py FOLDER [FAILED-STAGE...]

Reads FOLDER/*.xml of pytest, ctest and gtest, and FOLDER/*.left_out, which has the tests that
tests/support/left_out_tests.py left out. A failed stage without a failed test of its own counts as
one failure. The last line is `N passed, N failed, N skipped`. Exits 1 if anything failed.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_SKIP = re.compile(r'^\S+:\d+: Skipped\n(.*?)$', re.M)
GTEST_PLACE = re.compile(r'^\S+:\d+ ')


def reason(case, skipped):
    """Why a test was skipped. Of a gtest that ctest ran, the reason is in the output only."""
    output = case.findtext('system-out') or ''
    if match := GTEST_SKIP.search(output):
        return match[1].strip()
    text = skipped.get('message') or skipped.text or ''
    return GTEST_PLACE.sub('', ' '.join(text.split())) or 'no reason given'


def read(path):
    """(passed, names of failed tests, [(name, reason)] of skipped tests) of one file."""
    passed, failed, skipped = 0, [], []
    for case in ElementTree.parse(path).iter('testcase'):
        names = (case.get('classname'), case.get('name'))
        name = '::'.join(dict.fromkeys(n for n in names if n))
        if case.find('failure') is not None or case.find('error') is not None:
            failed.append(name)
        elif (element := case.find('skipped')) is not None:
            skipped.append((name, reason(case, element)))
        elif case.get('status') in ('notrun', 'disabled'):
            skipped.append((name, case.get('status')))
        else:
            passed += 1
    return passed, failed, skipped


def print_left_out(folder):
    arguments = collections.Counter(
        line.split()[0]
        for path in pathlib.Path(folder).glob('*.left_out')
        for line in path.read_text().splitlines()
    )
    if arguments:
        print('\nleft out:')
    for argument, number in arguments.most_common():
        print(f'  {number} x tools/test.sh {argument} runs it')


def report(folder, failed_stages):
    """Prints the report; returns the numbers of passed, failed and skipped tests."""
    passed, failed, reasons = 0, [], collections.defaultdict(list)
    stages_with_failures = set()
    for path in sorted(pathlib.Path(folder).glob('*.xml')):
        try:
            one_passed, one_failed, one_skipped = read(path)
        except ElementTree.ParseError as error:
            one_passed, one_failed, one_skipped = 0, [f'unreadable: {error}'], []
        passed += one_passed
        failed += [f'{path.stem}: {name}' for name in one_failed]
        if one_failed:
            stages_with_failures.add(re.split('[-.]', path.stem)[0])
        for name, why in one_skipped:
            reasons[why].append(f'{path.stem}: {name}')
    failed += [f'stage {name}' for name in failed_stages if name not in stages_with_failures]

    skipped = sum(len(names) for names in reasons.values())
    if skipped:
        print(f'\n{skipped} skipped:')
    for why, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        others = f' and {len(names) - 3} more' if len(names) > 3 else ''
        print(f'  {len(names)} x {why}: {", ".join(names[:3])}{others}')
    print_left_out(folder)
    if failed:
        print(f'\n{len(failed)} failed:')
        print(''.join(f'  {name}\n' for name in failed), end='')
    return passed, len(failed), skipped


def main():
    passed, failed, skipped = report(sys.argv[1], sys.argv[2:])
    print(f'\n{passed} passed, {failed} failed, {skipped} skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
