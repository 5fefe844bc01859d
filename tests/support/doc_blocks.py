"""Blocks of a page of the documentation. doc_runner.py follows a page as a reader does.

The comment above a block states what the runner does with it:

    <!-- test -->                     its commands run, in the folder of the page
    <!-- test: root -->               the same, in the project itself
    <!-- test: newcomer -->           only in a fresh Debian, by tests/newcomer
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
        return (self.mark or '').startswith('test') and self.mark != 'test: newcomer'

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


def pages(docs):
    """The blocks of each page below this folder, by the page's path in it."""
    return {str(path.relative_to(docs)): blocks(path) for path in sorted(docs.rglob('*.md'))}


def pattern(line):
    parts = [re.escape(part) for part in line.split('…')]
    return re.sub(r'\d+', r'\\d+', '.*'.join(parts))


def check_output(shown, output):
    for text in shown:
        assert re.search(f'^{pattern(text)}$', output, re.M), f'no {text!r} in:\n{output}'
