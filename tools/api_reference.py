#!/usr/bin/env python3
"""Makes the reference of the worker SDK's C++ and C API with Doxygen; exits 1 on any warning.

    tools/api_reference.py              # writes build/cpp-api
    tools/api_reference.py --list       # prints the headers that it covers

docs/Doxyfile has the settings. The headers are those that users include and what these include in
turn: a symbol of a new header needs a text from its first day.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UMBRELLAS = ('cpprun/torch.hpp', 'cpprun/worker.hpp', 'cpprun/worker.h')
# In folders of other modules, but part of the API.
OTHERS = ('rendezvous/client/store/store_client.hpp',)
INCLUDE = re.compile(r'^#include "(cpprun/[^"]+)"', re.M)
NESTED = re.compile(r'<a href="#nested-classes">[^<]*</a>(?: &#124;)?')
GROUP = re.compile(r'/// @([{}])\s*$', re.M)


def public_headers(root):
    """The paths, relative to root, in the order in which they are reached."""
    found, pending = [], list(UMBRELLAS)
    while pending:
        header = pending.pop(0)
        path = f'worker_sdk/{header}'
        if path in found or not (root / path).is_file():
            continue
        found.append(path)
        pending += INCLUDE.findall((root / path).read_text())
    return [*found, *OTHERS]


def open_groups(root, headers):
    """Headers whose marks of groups do not pair: Doxygen then gives one text to what follows."""
    for header in headers:
        marks = ''.join(GROUP.findall((root / header).read_text()))
        if marks.replace('{}', ''):
            yield f'{header}: each `/// @{{` needs its `/// @}}`, and groups do not nest'


def run_doxygen(root, headers, output):
    """What Doxygen complains about: one finding per line."""
    settings = (root / 'docs/Doxyfile').read_text()
    settings += f'INPUT = {" ".join(headers)}\nOUTPUT_DIRECTORY = {output}\n'
    done = subprocess.run(
        ['doxygen', '-'], input=settings, cwd=root, capture_output=True, text=True, check=False
    )
    findings = sorted(set(done.stderr.replace(f'{root}/', '').splitlines()))
    if done.returncode and not findings:
        findings = [f'doxygen exited with {done.returncode}']
    return findings


def drop_dead_links(output):
    """Removes the link to a list of nested classes that Doxygen leaves out: all are private."""
    for page in output.glob('*.html'):
        text = page.read_text()
        if NESTED.search(text) and 'name="nested-classes"' not in text:
            page.write_text(NESTED.sub('', text))


def main():
    headers = public_headers(ROOT)
    if sys.argv[1:] == ['--list']:
        print('\n'.join(headers))
        return
    if shutil.which('doxygen') is None:
        sys.exit('api_reference: there is no doxygen; tools/deps.sh --docs installs it')
    output = ROOT / 'build/cpp-api'
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    findings = [*open_groups(ROOT, headers), *run_doxygen(ROOT, headers, output)]
    drop_dead_links(output)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
