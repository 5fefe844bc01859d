"""README.md and the first tutorial, followed literally on a bare Debian (tools/fresh.sh).

It takes the committed pages, downloads torch, and compiles with this machine's compiler cache.
"""

import os
import pathlib
import re
import shlex
import subprocess

import doc_blocks
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ('README.md', 'docs/tutorials/first-job.md')
LIMIT = 7000


def grep(line):
    """The lines that a shown line stands for, as an extended regular expression."""
    parts = [re.sub(r'([][\\.^$*+?(){}|])', r'\\\1', part) for part in line.split('…')]
    return re.sub(r'\d+', '[0-9]+', '.*'.join(parts))


def commands(page):
    """The blocks of a page as a shell script that ends at the first error."""
    yield f'echo "=== {page}"'
    for block in doc_blocks.blocks(ROOT / page):
        mark = block.mark or ''
        if mark.startswith('file: '):
            end = 'END_OF_BLOCK'
            yield f'cat >{mark.removeprefix("file: ")} <<"{end}"\n{block.body}{end}'
        if not block.is_shell or not mark.startswith('test'):
            continue
        script, shown = block.script_and_output()
        yield f'echo "=== {page}:{block.line}"'
        yield '{\n' + script.rstrip() + '\n} >block.out 2>&1'
        for line in shown:
            yield f'grep -E -m 1 -e {shlex.quote(f"^{grep(line)}$")} block.out'


@pytest.mark.timeout(LIMIT + 100)
def test_readme_and_the_first_tutorial_work_on_a_bare_debian():
    if os.geteuid() != 0:
        pytest.skip('a chroot needs root')
    begin = "trap 'echo the last output; tail -n 100 block.out' ERR"
    script = '\n'.join([begin, *(line for page in PAGES for line in commands(page))])
    done = subprocess.run(
        [ROOT / 'tools/fresh.sh', '--cache', '--run', script],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:]
    assert f'=== {PAGES[-1]}' in done.stdout
