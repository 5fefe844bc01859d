"""Follows a page of the documentation as a reader does: doc_blocks.py has the marks."""

import re

from doc_blocks import check_output
from launches import BIN, ROOT


def lay_out(folder):
    """Makes `folder` look like a clone in which cpprun was built and --python was installed."""
    (folder / 'build/release').mkdir(parents=True)
    (folder / 'build/release/bin').symlink_to(BIN)
    for name in ('examples', 'packaging', 'tools', 'worker_sdk', '.venv'):
        (folder / name).symlink_to(ROOT / name)


# After a block its variables and its folder are kept for the next one.
KEEP = 'export -p >"$DOC_STATE"; printf "cd %q\\n" "$PWD" >>"$DOC_STATE"'
IN_ORDER = ('test', 'test: afterwards', 'test: root')


def start_in_root(launches, block):
    """One after the other, because two builds must not use one build folder at once."""
    lock = ROOT / 'build/root_blocks.lock'
    lock.parent.mkdir(exist_ok=True)
    script = ('bash', '-euo', 'pipefail', '-c', block.script_and_output()[0])
    return launches.start('flock', '--close', lock, *script, folder=ROOT)


def start(launches, block):
    if block.mark == 'test: root':
        return start_in_root(launches, block)
    state = launches.folder / '.doc-state'
    state.touch()
    script = f'. "$DOC_STATE"\n{block.script_and_output()[0]}\n'
    if block.mark in IN_ORDER:
        script += KEEP
    env = {'DOC_STATE': str(state)}
    return launches.start('bash', '-euo', 'pipefail', '-c', script, env=env)


def finish(block, started, limit):
    code = started.done(limit)
    assert code == 0, f'line {block.line}: exit code {code}\n{started.output}'
    check_output(block.script_and_output()[1], started.output)


def follow(launches, page_blocks, limit):
    """Runs the blocks, in their order, in the folder of `launches`."""
    terminals = []
    for block in page_blocks:
        mark = block.mark or ''
        if mark.startswith('file: '):
            (launches.folder / mark.removeprefix('file: ')).write_text(block.body)
        if not block.is_shell or not block.is_tested:
            continue
        if mark == 'test: afterwards':
            while terminals:
                finish(*terminals.pop(0), limit)
        started = start(launches, block)
        if mark.startswith('test: meanwhile'):
            started.wait_for(re.escape(mark.partition(' until ')[2]), limit)
            terminals.append((block, started))
        else:
            assert mark in IN_ORDER, f'line {block.line}: unknown mark {mark!r}'
            finish(block, started, limit)
    for block, started in terminals:
        finish(block, started, limit)
