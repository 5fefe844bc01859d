#!/usr/bin/env python3
"""Checks the project's style: prints `file:line: rule: what` per finding, exits 1 if it has any.

    tools/tidy.py            # the whole project
    tools/tidy.py FILE...    # these files only

Rules and reasons: docs/style.md. A line that must break a rule carries a waiver, on itself or on
the line above: `tidy: allow RULE, because ...`.
"""

import ast
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cpp_source
import vocabulary

FILE_LINES, FUNCTION_LINES, COLUMNS = 800, 70, 100
FOLDER_PAIRS = 25  # a header and its source count as one
CPP = ('.cpp', '.hpp')
PROSE = ('.md', '.txt')
DATA = ('.gz', '.png', '.svg', '.bin', '.golden', '.pt', '.deb', '.1')
UNCHECKED = re.compile(r'(^|/)(corpus|golden|data)/|^LICENSE$')
TIMED_TESTS = re.compile(r'^tests/(unit|scenarios|sim|integration)/')

LATER = re.compile(r'\b(TO' r'DO|FIX' r'ME|X' r'XX)\b')
PAGE = re.compile(r'(?<![\w/.:-])docs/[\w./-]+\.(?:md|json|png)\b')
MACHINE_PATH = re.compile(r'(?<![\w.$}])/(?:work|home/\w+)/')
DEAD_CODE = re.compile(
    r'^\s*(?:(?:return|auto|const|int|bool|if|for|while|delete|throw)\b[^.]*[;{]'
    r'|[\w:<>,&*\[\]. ]+ [-+*|&]?= [^=].*;|[\w.:>-]+\(.*\);|#include\s.*|[{}]\s*)\s*$'
)
BANNED = [
    (r'(?<![\w.>])(?:std::|::)?system\s*\(', 'starts a shell; use the process module'),
    (r'(?<![\w.>])(?:::)?popen\s*\(', 'starts a shell; use the process module'),
    (r'(?<!\w)v?sprintf\s*\(', 'has no limit; use snprintf or std::to_chars'),
    (r'(?<!\w)str(?:cpy|cat)\s*\(', 'has no limit; use std::string'),
    (r'\bstd::s?rand\b|(?<![\w.:>])s?rand\s*\(', 'hidden state; pass a seeded generator in'),
    (
        r'(?<!\w)(?:tmpnam|mktemp|gets|strtok|asctime|localtime|gmtime)\s*\(',
        'unsafe; use the _r, mkstemp form',
    ),
    (r'\bstd::(?:endl)\b', "flushes; write '\\n'"),
]
SLEEPS = re.compile(r'\bsleep_(?:for|until)\s*\(|(?<![\w.>])u?sleep\s*\(|\bnanosleep\s*\(')
# Headers that take seconds to compile: how many .cpp files per scope may include them. A "side" is
# a top folder.
HEAVY = [
    ('spdlog/', 1, 'project'),
    ('boost/asio/impl/src.hpp', 1, 'project'),
    ('boost/beast', 2, 'project'),  # one parses requests, one parses replies
    ('CLI/', 9, 'folder'),  # a unity build compiles a folder at once
    ('nlohmann/json.hpp', 6, 'side'),
]
# Classes whose methods are spread over several files. Numbers may only shrink; add no class.
SPLIT_CLASSES = {}


class Report:
    """The findings of one run, without those that a waiver covers."""

    def __init__(self):
        self.findings = []
        self.lines = {}

    def add(self, path, line, rule, text):
        around = self.lines.get(path, [])[max(0, line - 2) : line]
        if not any(re.search(rf'tidy: allow {re.escape(rule)}\b', near) for near in around):
            self.findings.append((path, line, rule, text))


def check_lines(report, path, text):
    lines = text.split('\n')
    report.lines[path] = lines
    is_prose = path.endswith(PROSE)
    if text and not text.endswith('\n'):
        report.add(path, len(lines), 'final-newline', 'no newline at the end')
    if text.endswith('\n\n'):
        report.add(path, len(lines) - 1, 'final-newline', 'empty lines at the end')
    for number, line in enumerate(lines, 1):
        if '\t' in line:
            report.add(path, number, 'tab', 'tabs are not used')
        if line != line.rstrip() and not path.endswith('.patch'):
            report.add(path, number, 'trailing-space', 'space at the end of the line')
        if LATER.search(line):
            report.add(path, number, 'later', 'write it now, or open an issue')
        if MACHINE_PATH.search(line):
            report.add(path, number, 'machine-path', "an absolute path of one machine")
        if path.endswith((*CPP, '.py', '.sh')) and len(line) > COLUMNS and '://' not in line:
            report.add(path, number, 'line-length', f'{len(line)} columns, at most {COLUMNS}')
    if not is_prose and len(lines) - 1 > FILE_LINES:
        report.add(path, 1, 'file-length', f'{len(lines) - 1} lines, at most {FILE_LINES}')


def check_words(report, path, text):
    if path in ('tools/vocabulary.py', 'docs/style.md', 'CHANGELOG.md'):
        return
    for word, term in vocabulary.withdrawn(path):
        report.add(path, 1, 'withdrawn-word', f'file name: {word}; use: {term}')
    for number, line in enumerate(text.split('\n'), 1):
        for word, term in vocabulary.withdrawn(line):
            report.add(path, number, 'withdrawn-word', f'{word}; use: {term}')


def check_pages(report, root, path, text):
    """The pages under docs/ that a comment, a message or a text names exist."""
    for number, line in enumerate(text.split('\n'), 1):
        for name in PAGE.findall(line):
            if path != 'CHANGELOG.md' and not (pathlib.Path(root) / name).is_file():
                report.add(path, number, 'page', f'there is no {name}')


def check_python(report, path, text):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        report.add(path, error.lineno or 1, 'python', str(error.msg))
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                report.add(
                    path,
                    node.lineno,
                    'function-length',
                    f'{node.name}: {length} lines, at most {FUNCTION_LINES}',
                )


def check_shell(report, path, text):
    if text.startswith('#!') and 'set -euo pipefail' not in text:
        report.add(path, 1, 'shell', 'no `set -euo pipefail`')


def check_header(report, source):
    path, lines = source.path, source.text.split('\n')
    if '#pragma once' not in lines:
        report.add(path, 1, 'pragma-once', 'a header needs #pragma once')
    if not source.text.startswith(('//', '/*')):
        report.add(
            path, 1, 'header-comment', 'start with purpose, thread and ownership'
        )
    for match in re.finditer(
        r'\busing\s+namespace\s+(?!std::(?:\w+_)?literals|std::chrono_literals)', source.code
    ):
        if source.code[: match.start()].count('{') - source.code[: match.start()].count('}') < 2:
            report.add(path, source.line(match.start()), 'using-namespace', 'not in a header')


def check_includes(report, root, source):
    folder = pathlib.PurePosixPath(source.path).parent
    for line, name, is_quoted in source.includes():
        # Includes of the SDK's headers omit worker_sdk/, as in users' programs.
        homes = (pathlib.Path(root), pathlib.Path(root) / 'worker_sdk')
        if not is_quoted or any((home / name).is_file() for home in homes):
            continue
        if '/' not in name or (pathlib.Path(root) / folder / name).is_file():
            report.add(
                source.path, line, 'include-path', f'write the path from the root: {folder}/{name}'
            )


def statement_around(code, at):
    """(begin, end) of the statement with the co_await at `at`; begin is None inside its braces."""
    begin = max(code.rfind(c, 0, at) for c in ';{}')
    if begin >= 0 and code[begin] == '{':
        before = code[:begin]
        if re.search(r'([\w>(]|[=,(]\s*|\breturn\s*)$', before[-12:]) and not re.search(
            r'\s$', before
        ):
            begin = None
        elif re.search(r'([=,(]|\breturn)\s*$', before[-12:]):
            begin = None
    elif (
        begin >= 0 and code[begin] == '}' and re.match(r'\s*[).,+*/?:;&|<>=\]-]', code[begin + 1 :])
    ):
        begin = None
    depth, end = 0, at
    while end < len(code) and not (code[end] == ';' and depth == 0):
        depth += {'(': 1, '[': 1, '{': 1, ')': -1, ']': -1, '}': -1}.get(code[end], 0)
        if depth < 0:
            break
        end += 1
    return begin, end


def check_coroutines(report, source):
    for match in re.finditer(r'\bco_await\b', source.code):
        begin, end = statement_around(source.code, match.start())
        line = source.line(match.start())
        statement = source.code[(match.start() if begin is None else begin + 1) : end]
        if begin is None or '{' in statement:
            report.add(
                source.path, line, 'co-await', 'no braces in a statement with co_await (g++ 12)'
            )
        elif re.search(r'(?<![\w\])])\[\s*[&=\w]', re.sub(r'\bauto\s*&{0,2}\s*\[', ' ', statement)):
            report.add(
                source.path, line, 'co-await', 'no capturing lambda in a statement with co_await'
            )
        elif ' ? ' in statement:
            report.add(source.path, line, 'co-await', 'no ?: in a statement with co_await (g++ 12)')
    for match in re.finditer(
        r'\[[^\[\]\n]+\]\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:mutable\s*)?->\s*[\w:]*awaitable',
        source.code,
    ):
        report.add(
            source.path,
            source.line(match.start()),
            'coroutine-lambda',
            'its captures are destroyed before it ends; pass parameters instead',
        )


def check_calls(report, source):
    for pattern, reason in BANNED:
        for match in re.finditer(pattern, source.code):
            name = match[0].strip(' (')
            report.add(source.path, source.line(match.start()), 'banned-call', f'{name}: {reason}')
    if TIMED_TESTS.match(source.path):
        for match in SLEEPS.finditer(source.code):
            report.add(
                source.path,
                source.line(match.start()),
                'sleep',
                'wait for the event with a deadline; do not synchronise by sleeping',
            )


def check_comments(report, source):
    top = 0  # an SDK header may begin with example code
    if source.path.startswith('worker_sdk/') and source.path.endswith('.hpp'):
        top = source.text.count('\n', 0, source.text.find('#pragma once'))
    for line, text in source.comments:
        if DEAD_CODE.match(text) and line > top:
            report.add(source.path, line, 'dead-code', 'commented-out code; remove it')
    for match in re.finditer(r'^[ \t]*#\s*if\s+0\b', source.text, re.M):
        report.add(source.path, source.line(match.start()), 'dead-code', '#if 0')


def check_functions(report, source):
    for first, last, head in cpp_source.functions(source):
        if last - first + 1 > FUNCTION_LINES:
            report.add(
                source.path,
                first,
                'function-length',
                f'{last - first + 1} lines, at most {FUNCTION_LINES}: {head[:60]}',
            )


def check_heavy_headers(report, sources):
    for header, most, scope in HEAVY:
        users = collections.defaultdict(list)
        for source in sources:
            if source.path.startswith(('tests/', 'bench/')):
                continue
            lines = [line for line, name, _ in source.includes() if name.startswith(header)]
            if lines and source.path.endswith('.hpp'):
                report.add(
                    source.path, lines[0], 'heavy-header', f'{header} belongs in a .cpp file'
                )
            elif lines:
                path = pathlib.PurePosixPath(source.path)
                key = {'project': 'all', 'folder': str(path.parent), 'side': path.parts[0]}[scope]
                users[key].append((source.path, lines[0]))
        for places in users.values():
            for path, line in places[most:]:
                others = ', '.join(other for other, _ in places[:most])
                report.add(path, line, 'heavy-header', f'{header} is in {most} already: {others}')


def pair_of(path):
    return str(pathlib.PurePosixPath(path).with_suffix(''))


def check_folders(report, sources):
    pairs = collections.defaultdict(set)
    for source in sources:
        pairs[str(pathlib.PurePosixPath(source.path).parent)].add(pair_of(source.path))
    for folder, inside in pairs.items():
        if len(inside) > FOLDER_PAIRS:
            text = f'{len(inside)} pairs of header and source, at most {FOLDER_PAIRS}'
            report.add(folder, 1, 'folder-size', text)


def check_split_classes(report, sources, known):
    homes = collections.defaultdict(dict)  # class -> pair -> position of its first method
    spaces = set().union(*(cpp_source.namespace_names(source) for source in sources))
    for source in sources:
        for line, owner in cpp_source.methods(source):
            if owner in spaces:
                continue  # a namespace, not a class
            homes[owner].setdefault(pair_of(source.path), (source.path, line))
    for owner, places in sorted(homes.items()):
        most = known.get(owner, 1)
        for path, line in sorted(places.values())[most:]:
            others = ', '.join(other for other, _ in sorted(places.values())[:most])
            report.add(path, line, 'split-class', f'{owner} has methods in {others} already')
    for owner, most in known.items():
        if len(homes.get(owner, {})) < most:
            text = f'{owner} is in {len(homes.get(owner, {}))} files, not in {most}: change its row'
            report.add('tools/tidy.py', 1, 'split-class', text)


def check_class_names(report, sources):
    """Two classes with one name in one program are undefined behaviour that no linker reports."""
    first = {}
    for source in sources:
        for line, name in cpp_source.classes(source):
            other = first.setdefault(name, source.path)
            if other != source.path:
                report.add(source.path, line, 'class-name', f'{name} is defined in {other} already')


def check(root, names=None, split_classes=None):
    """Returns the findings for these files, or all, as (path, line, rule, text)."""
    report, sources = Report(), []
    for path in names or cpp_source.files(root):
        if UNCHECKED.search(path) or path.endswith(DATA):
            continue
        text = (pathlib.Path(root) / path).read_text(encoding='utf-8', errors='replace')
        check_lines(report, path, text)
        check_words(report, path, text)
        check_pages(report, root, path, text)
        if path.endswith('.py'):
            check_python(report, path, text)
        if path.endswith('.sh') or re.match(r'#!.*\b(ba)?sh\b', text):
            check_shell(report, path, text)
        if path.endswith(CPP):
            sources.append(cpp_source.read(root, path))
    for source in sources:
        if source.path.endswith('.hpp'):
            check_header(report, source)
        check_includes(report, root, source)
        check_coroutines(report, source)
        check_calls(report, source)
        check_comments(report, source)
        check_functions(report, source)
    check_heavy_headers(report, sources)
    if names is None:
        check_folders(report, sources)
        check_split_classes(report, sources, split_classes or {})
        check_class_names(report, sources)
    return sorted(report.findings)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    names = [str(pathlib.Path(name).resolve().relative_to(root)) for name in sys.argv[1:]]
    findings = check(root, names or None, SPLIT_CLASSES)
    for path, line, rule, text in findings:
        print(f'{path}:{line}: {rule}: {text}')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
