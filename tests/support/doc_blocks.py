"""Blocks of a page of the documentation, and a runner that follows the page as a reader does.

The comment above a block says what the runner does with it:

    <!-- test -->                     its commands run, in the folder of the page
    <!-- test: root -->               the same, in the project itself
    <!-- test: meanwhile -->          its commands run in a terminal of their own; the next block
                                      begins at once
    <!-- test: meanwhile until X -->  the same; the next block begins when their output has X
    <!-- test: afterwards -->         its commands run when those of the other terminals have ended
    <!-- file: NAME -->               the block is the file NAME
    <!-- is the file: PATH -->        the block is that file of the project
    <!-- is in the file: PATH -->     the block is a part of that file
    <!-- no test: WHY -->             nothing

Commands must end with 0. Each line of output that a console block shows must appear, with any
digits where it shows digits and anything where it shows an ellipsis. Exported variables last until
the end of the page.
"""

import re

from launches import BIN, ROOT

BLOCK = re.compile(
    r'^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$', re.M | re.S
)
SHELL = ('console', 'sh', 'bash')


class Block:
    def __init__(self, text, match):
        self.line = text.count('\n', 0, match.start()) + 1
        self.mark = match['mark']
        self.kind = match['kind']
        self.body = match['body']

    @property
    def is_shell(self):
        return self.kind in SHELL

    @property
    def is_tested(self):
        return self.mark is not None and self.mark.startswith('test')

    def script_and_output(self):
        """A shell script, and the lines that its output must contain."""
        if not self.body.startswith('$ '):
            return self.body, []
        script, shown = [], []
        for line in self.body.splitlines():
            is_more = script and script[-1].endswith('\\')
            if line.startswith('$ ') or is_more:
                script.append(line.removeprefix('$ ').removeprefix('> '))
            elif line.strip() not in ('', '…'):
                shown.append(line)
        return '\n'.join(script), shown


def blocks(path):
    text = path.read_text() if path.is_file() else ''
    return [Block(text, match) for match in BLOCK.finditer(text)]


def pattern(line):
    parts = [re.escape(part) for part in line.split('…')]
    return re.sub(r'\d+', r'\\d+', '.*'.join(parts))


def check_output(shown, output):
    for text in shown:
        assert re.search(f'^{pattern(text)}$', output, re.M), f'no {text!r} in:\n{output}'


def lay_out(folder):
    """Makes `folder` look like a clone in which cpprun was built and --python was installed."""
    (folder / 'build/release').mkdir(parents=True)
    (folder / 'build/release/bin').symlink_to(BIN)
    for name in ('examples', 'packaging', 'tools', 'worker_sdk', '.venv'):
        (folder / name).symlink_to(ROOT / name)


# After a block its variables and its folder are kept for the next one.
KEEP = 'export -p >"$DOC_STATE"; printf "cd %q\\n" "$PWD" >>"$DOC_STATE"'
IN_ORDER = ('test', 'test: afterwards')


def start(launches, block):
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
    """Does what the blocks say, in their order, in the folder of `launches`."""
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
