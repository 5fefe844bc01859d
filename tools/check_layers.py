#!/usr/bin/env python3
"""Checks the layers of docs/ARCHITECTURE.md, on #include lines and CMake links.

    tools/check_layers.py

Prints `file:line: what and why` for each dependency that tools/layers.py does not allow; exits 1 if
it finds any.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cpp_source
from layers import ABOVE, ARROWS, BUILD_ONLY, IMPURE_CALLS, IMPURE_HEADERS, OUTSIDE, PURE
from layers import PURE_EXCEPTIONS

# Includes of public headers omit this folder, as in users' programs.
PUBLIC_HEADERS = 'worker_sdk/'


def module_of(path):
    if path.startswith('cpprun/'):
        path = PUBLIC_HEADERS + path
    fits = [name for name in ARROWS if path == name or path.startswith(name + '/')]
    return max(fits, key=len) if fits else None


def is_above(path):
    return path.split('/')[0] in ABOVE and module_of(path) is None


def check_outside(module, path, line, name, out, is_include=True):
    for pattern, allowed, why in OUTSIDE:
        if re.match(pattern, name) and module not in allowed:
            out.append((path, line, f'{module} names {name}: {why}'))
    if is_include and module in PURE and IMPURE_HEADERS.match(name):
        if (path, name) not in PURE_EXCEPTIONS:
            why = 'pure modules do no I/O and use no threads'
            out.append((path, line, f'{module} includes <{name}>: {why}'))


def readers_of(header, sources):
    """Paths of all files that include `header`, directly or through others."""
    readers, fresh = set(), {header}
    while fresh:
        fresh = {
            path
            for path, (source, _) in sources.items()
            if path not in readers
            and any(n in fresh for _, n, quoted in source.includes() if quoted)
        }
        readers |= fresh
    return sorted(readers)


def check_reach(sources, out):
    """Reports a restricted library that reaches other modules through a header."""
    for path, (source, module) in sources.items():
        for line, name, _ in source.includes() if path.endswith('.hpp') else []:
            for pattern, allowed, why in OUTSIDE:
                if not re.match(pattern, name) or module not in allowed:
                    continue
                for reader in readers_of(path, sources):
                    if sources[reader][1] not in allowed:
                        out.append((path, line, f'{name} reaches {reader} from here: {why}'))


def check_arrow(module, other, path, line, name, out):
    if other is None or other == module or other in ARROWS[module]:
        return
    allowed = ', '.join(sorted(ARROWS[module])) or 'nothing'
    out.append((path, line, f'{module} names {name} of {other}: it may name {allowed}'))


def unordered_names(sources):
    """The names of a module's variables that are unordered containers."""
    declared = re.compile(r'\bunordered_(?:multi)?(?:map|set)\s*<[^;{}()]*>\s*&?\s*(\w+)\s*[;={]')
    return {match[1] for source in sources for match in declared.finditer(source.code)}


def check_order(module, sources, out):
    """Reports iteration over unordered containers: messages must not depend on hash order."""
    names = unordered_names(sources)
    for source in sources:
        for name in names:
            walks = re.finditer(
                rf'\bfor\s*\([^;()]*:\s*(?:this->)?{name}\s*\)|\b{name}\.c?begin\s*\(', source.code
            )
            out += [
                (
                    source.path,
                    source.line(match.start()),
                    f'{module} iterates over unordered {name}: its order is arbitrary',
                )
                for match in walks
            ]


def read_sources(root, paths, out):
    """{path: (source, module)} of all files that belong to a module."""
    sources = {}
    for path in paths:
        is_cpp = path.endswith(('.cpp', '.hpp', '.h', '.cc'))
        if not is_cpp or path.split('/')[0] in BUILD_ONLY or is_above(path):
            continue
        if module_of(path) is None:
            why = 'belongs to no module: add it to tools/layers.py and docs/ARCHITECTURE.md'
            out.append((path, 1, why))
        else:
            sources[path] = (cpp_source.read(root, path), module_of(path))
    return sources


def check_sources(root, paths, out):
    pure = {}
    sources = read_sources(root, paths, out)
    for path, (source, module) in sources.items():
        for line, name, is_quoted in source.includes():
            if is_quoted:
                other = module_of(name)
                if other is None and is_above(name):
                    out.append((path, line, f'{module} includes {name}: only tests may'))
                check_arrow(module, other, path, line, f'"{name}"', out)
            check_outside(module, path, line, name, out)
        if module in PURE:
            pure.setdefault(module, []).append(source)
            for pattern, why in IMPURE_CALLS:
                out += [
                    (path, source.line(m.start()), f'{m[0].strip(" (")} in {module}: {why}')
                    for m in re.finditer(pattern, source.code)
                ]
    for module, module_sources in pure.items():
        check_order(module, module_sources, out)
    check_reach(sources, out)


COMMAND = re.compile(
    r'\b(cpprun_module|cpprun_torch_module|add_library|add_executable|target_link_libraries)'
    r'\s*\(([^()]*)\)'
)
KEYWORDS = {
    'PUBLIC',
    'PRIVATE',
    'INTERFACE',
    'STATIC',
    'SHARED',
    'OBJECT',
    'EXCLUDE_FROM_ALL',
    'SOURCES',
    'LINKS',
    'ALIAS',
    'IMPORTED',
    'GLOBAL',
    'MODULE',
}


def cmake_commands(root, paths):
    """(path, line, command, words) of each command that defines or links a target."""
    for path in paths:
        if pathlib.PurePosixPath(path).name != 'CMakeLists.txt':
            continue
        text = (pathlib.Path(root) / path).read_text(encoding='utf-8')
        text = re.sub(r'#[^\n]*', lambda m: ' ' * len(m[0]), text)
        for match in COMMAND.finditer(text):
            words = match[2].split()
            if words and '$' not in words[0]:
                yield path, text.count('\n', 0, match.start()) + 1, match[1], words


def target_module(path, words):
    """The module of a target: that of its first source, else that of its folder."""
    folder = str(pathlib.PurePosixPath(path).parent)
    for word in words[1:]:
        if word.endswith('.cpp'):
            return str(pathlib.PurePosixPath(folder) / pathlib.PurePosixPath(word).parent)
    return folder


def check_links(root, paths, out):
    commands = [c for c in cmake_commands(root, paths) if c[0] != 'CMakeLists.txt']
    homes = {
        words[0]: target_module(path, words)
        for path, _, command, words in commands
        if command != 'target_link_libraries'
    }
    for path, line, command, words in commands:
        home = homes.get(words[0], str(pathlib.PurePosixPath(path).parent))
        if is_above(home) or command in ('add_library', 'add_executable'):
            continue
        module = module_of(home)
        if module is None:
            out.append((path, line, f'target {words[0]} belongs to no module'))
            continue
        links = words[words.index('LINKS') + 1 :] if 'LINKS' in words else words[1:]
        if command.endswith('_module') and 'LINKS' not in words:
            links = []
        for name in links:
            if name in KEYWORDS or name.startswith('$'):
                continue
            if name in homes:
                check_arrow(module, module_of(homes[name]), path, line, name, out)
            else:
                check_outside(module, path, line, name, out, is_include=False)


def check(root, paths=None):
    """Returns the findings, as (path, line, text)."""
    out = []
    paths = paths if paths is not None else cpp_source.files(root)
    check_sources(root, paths, out)
    check_links(root, paths, out)
    return sorted(set(out))


def main():
    findings = check(pathlib.Path(__file__).resolve().parent.parent)
    for path, line, text in findings:
        print(f'{path}:{line}: {text}')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
