"""A rough C++ parser for tidy.py and check_layers.py: comments, literals, functions."""

import dataclasses
import os
import pathlib
import re
import subprocess

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)")'
    r'|(?P<text>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')",
    re.S,
)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
TYPE_HEAD = re.compile(
    r'(?:inline |export |static |const )*(class|struct|union|enum|namespace|extern)\b'
)
TEMPLATE = re.compile(r'^template\s*<[^{}]*?>\s*(?=\w|\[)')
CONTROL = re.compile(r'(if|for|while|switch|catch|else|do|try|return|case|default)\b')


@dataclasses.dataclass
class Source:
    """One file. `code` is `text` with comments, literals and directives replaced by blanks."""

    path: str
    text: str
    code: str = ''
    comments: list = dataclasses.field(default_factory=list)  # (line, text), one entry per line

    def line(self, offset):
        return self.text.count('\n', 0, offset) + 1

    def includes(self):
        """(line, name, is_quoted) of each #include."""
        found = re.finditer(r'^[ \t]*#\s*include\s*(["<])([^">]+)[">]', self.text, re.M)
        return [(self.line(m.start(2)), m[2], m[1] == '"') for m in found]


def blank(text):
    return re.sub(r'[^\n]', ' ', text)


def read(root, path):
    text = (pathlib.Path(root) / path).read_text(encoding='utf-8', errors='replace')
    source = Source(path, text)
    parts, end = [], 0
    for match in TOKEN.finditer(text):
        parts += [text[end : match.start()], blank(match[0])]
        end = match.end()
        if match['comment']:
            first = source.line(match.start())
            for number, line in enumerate(match[0].split('\n')):
                source.comments.append((first + number, line.strip().lstrip('/*').rstrip('*/')))
    code = ''.join(parts) + text[end:]
    source.code = DIRECTIVE.sub(lambda m: blank(m[0]), code)
    return source


def files(root):
    """The sorted paths, relative to root, of all files that git tracks or would add."""
    if (pathlib.Path(root) / '.git').exists():
        command = ['git', '-C', str(root), 'ls-files', '-co', '--exclude-standard', '-z']
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(
            '\0'
        )
    else:
        names = [
            os.path.relpath(os.path.join(folder, name), root)
            for folder, _, inside in os.walk(root)
            for name in inside
        ]
    return sorted({n for n in names if n and (pathlib.Path(root) / n).is_file()})


def closing(code, opening):
    """The offset of the brace that closes the one at `opening`, or the end of the text."""
    depth = 0
    for match in re.compile(r'[{}]').finditer(code, opening):
        depth += 1 if match[0] == '{' else -1
        if depth == 0:
            return match.start()
    return len(code)


def is_function_head(head):
    head = head.strip()
    while TEMPLATE.match(head):
        head = TEMPLATE.sub('', head, count=1)
    if '(' not in head or head.endswith(('=', ',', '(')):
        return False
    return not TYPE_HEAD.match(head) and not CONTROL.match(head)


NAMESPACE = re.compile(r'\bnamespace\b\s*((?:\w+(?:::)?)*)\s*\{')


def namespaces(source):
    """(first line, last line, name) of each namespace; an anonymous one has an empty name."""
    return [
        (source.line(m.start()), source.line(closing(source.code, m.end() - 1)), m[1])
        for m in NAMESPACE.finditer(source.code)
    ]


def namespace_names(source):
    """The full names of all namespaces: "a::b"."""
    spaces = namespaces(source)
    return {
        '::'.join(outer for begin, end, outer in spaces if begin <= first and last <= end and outer)
        for first, last, _ in spaces
    }


def owner_in(head):
    """The class in the qualified name of a function's head, without template arguments."""
    depth = 0
    if match := re.search(r'((?:\w+(?:<[^<>()]*>)?::)*)operator\b', head):
        end = match.end(1)
    else:
        for end, letter in enumerate(head):
            if letter == '<' or (letter == '>' and head[end - 1] != '-'):
                depth += 1 if letter == '<' else -1
            elif letter == '(' and depth == 0:
                break
        end -= len(re.search(r'~?\w*\s*$', head[:end])[0])
    owner = re.search(r'((?:\w+(?:<[^<>]*>)?::)*)$', head[:end])[1]
    return re.sub(r'<[^<>]*>', '', owner).removesuffix('::')


def methods(source):
    """(line, qualified class) of each function that is defined outside its class."""
    found, spaces = [], namespaces(source)
    for first, last, head in functions(source):
        around = [name for begin, end, name in spaces if begin <= first and last <= end]
        owner = owner_in(head)
        if owner and '' not in around:  # classes in anonymous namespaces belong to one file
            found.append((first, '::'.join([*around, owner])))
    return found


CLASS = re.compile(
    r'^(?:struct|class)\s+(?:\[\[\w+\]\]\s+)?(\w+)(?:\s+final)?\s*(?::(?!:)[^{;]*)?\{', re.M
)


def classes(source):
    """(line, qualified name) of each class that is defined in a namespace with a name."""
    found, spaces = [], namespaces(source)
    for match in CLASS.finditer(source.code):  # a nested class is indented
        line = source.line(match.start())
        around = [name for begin, end, name in spaces if begin <= line <= end]
        if '' not in around:
            found.append((line, '::'.join([*around, match[1]])))
    return found


def functions(source):
    """(first line, last line, head) of each function; lambdas belong to the enclosing one."""
    code, at, start = source.code, 0, 0
    found = []
    while match := re.compile(r'[{};]').search(code, at):
        at = match.end()
        if match[0] != '{':
            start = at
            continue
        if re.match(r'[\w>)\]]', code[match.start() - 1 : match.start()]):
            at = closing(code, match.start()) + 1  # an initializer: no space before the brace
            continue
        head = code[start : match.start()]
        if is_function_head(head):
            end = closing(code, match.start())
            first = start + len(head) - len(head.lstrip())
            found.append((source.line(first), source.line(end), ' '.join(head.split())))
            at = end + 1
        elif head.rstrip().endswith('='):
            at = closing(code, match.start()) + 1
        start = at
    return found
