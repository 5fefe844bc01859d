"""Each rule of tools/tidy.py has a text that violates it and a similar one that does not."""

import pytest
import tidy

GOOD_HEADER = '// Thing: an example.\n#pragma once\n\nnamespace n {\nint f();\n}\n'


def rules(root):
    return [rule for _, _, rule, _ in tidy.check(root)]


def in_function(body):
    return 'awaitable<void> g() {\n' + body + '\n}\n'


def test_good_project_has_no_findings(project):
    root = project(
        {
            'a/thing.hpp': GOOD_HEADER,
            'a/thing.cpp': '#include "a/thing.hpp"\n\nint n::f() { return 1; }\n',
            'tools/x.sh': '#!/usr/bin/env bash\nset -euo pipefail\n',
            'tools/x.py': 'print(1)\n',
            'README.md': 'A long line of prose ' * 20 + 'is fine.\n',
        }
    )
    assert rules(root) == []


@pytest.mark.parametrize(
    'rule, name, text',
    [
        ('tab', 'a.cpp', 'int a;\tint b;\n'),
        ('trailing-space', 'a.cpp', 'int a; \n'),
        ('final-newline', 'a.cpp', 'int a;'),
        ('final-newline', 'a.cpp', 'int a;\n\n'),
        ('line-length', 'a.cpp', 'int ' + 'a' * 97 + ';\n'),
        ('line-length', 'a.py', 'a = ' + '1' * 97 + '\n'),
        ('file-length', 'a.cpp', 'int a;\n' * 801),
        ('later', 'a.cpp', '// TO' + 'DO: more\n'),
        ('later', 'a.md', 'FIX' + 'ME\n'),
        ('machine-path', 'a.md', 'see /wo' + 'rk/main/x\n'),
        ('page', 'a.cpp', '// do' + 'cs/a.md describes it.\n'),
        ('function-length', 'a.cpp', 'void f() {\n' + '  g();\n' * 70 + '}\n'),
        ('function-length', 'a.cpp', 'A::A(int b)\n    : b_{b} {\n' + '  g();\n' * 70 + '}\n'),
        ('function-length', 'a.py', 'def f():\n' + '    g()\n' * 71),
        ('python', 'a.py', 'def f(:\n'),
        ('shell', 'a.sh', '#!/bin/sh\necho\n'),
        ('pragma-once', 'a.hpp', '// A.\nint f();\n'),
        ('header-comment', 'a.hpp', '#pragma once\nint f();\n'),
        ('using-namespace', 'a.hpp', '// A.\n#pragma once\nusing namespace std;\n'),
        ('include-path', 'a/b.cpp', '#include "b.hpp"\n'),
        ('dead-code', 'a.cpp', '// return f(x);\n'),
        ('dead-code', 'a.cpp', '//   x = f(y);\n'),
        ('dead-code', 'a.cpp', '// f(y);\n'),
        ('dead-code', 'a.cpp', '#if 0\nint a;\n#endif\n'),
        ('banned-call', 'a.cpp', 'int f() { return std::system("ls"); }\n'),
        ('banned-call', 'a.cpp', 'auto* f() { return popen("ls", "r"); }\n'),
        ('banned-call', 'a.cpp', 'void f(char* b) { sprintf(b, "x"); }\n'),
        ('banned-call', 'a.cpp', 'void f(char* b) { strcpy(b, "x"); }\n'),
        ('banned-call', 'a.cpp', 'int f() { return std::rand(); }\n'),
        ('sleep', 'tests/unit/a_test.cpp', 'void f() { std::this_thread::sleep_for(1s); }\n'),
        ('sleep', 'tests/integration/a_test.cpp', 'void f() { usleep(1000); }\n'),
        ('heavy-header', 'a.hpp', '// A.\n#pragma once\n#include <nlohmann/json.hpp>\n'),
        ('withdrawn-word', 'a/hei' + 'r.cpp', 'int a;\n'),
        ('withdrawn-word', 'a.cpp', 'int is_hei' + 'r_lost;\n'),
        ('withdrawn-word', 'a.cpp', 'struct Hei' + 'rLost {};\n'),
        ('withdrawn-word', 'a.cpp', 'int a;  // the buri' + 'al of a node\n'),
        ('withdrawn-word', 'a.py', 'VERD' + 'ICTS = 1\n'),
        ('withdrawn-word', 'a.md', 'The her' + 'ald waits.\n'),
    ],
)
def test_rule_findings(project, rule, name, text):
    assert rule in rules(project({name: text}))


@pytest.mark.parametrize(
    'name, text',
    [
        ('a.cpp', 'int their; int theirs; int inherit; int seated_at; int strikethrough;\n'),
        ('a.patch', '-int a;\n \n+int b;\n'),
        ('do' + 'cs/a.md', '[do' + 'cs/a.md](a.md), https://x.org/do' + 'cs/b.md\n'),
        ('a.cpp', 'int ' + 'a' * 95 + ';\n'),
        ('a.cpp', 'void f() {\n' + '  g();\n' * 68 + '}\n'),
        ('a.cpp', 'namespace n {\n' + 'int f();\n' * 100 + '}\n'),
        ('a.cpp', 'const std::map<int, int> k = {\n' + '    {1, f(2)},\n' * 100 + '};\n'),
        ('a.cpp', 'class A : public B<int()> {\n' + '  int f();\n' * 100 + '};\n'),
        ('a.cpp', 'template <class T>\nstruct A {\n' + '  int f();\n' * 100 + '};\n'),
        ('a.cpp', '// What f(x) returns; the caller must look.\n'),
        ('a.cpp', '// Invariant: a == b;\n'),
        ('a.cpp', '// "}" ends it\nauto s = R"(sprintf( std::rand( })";\n'),
        ('a.cpp', 'void f(char* b) { snprintf(b, 1, "x"); }\n'),
        ('a.cpp', 'void f() { host.system("x"); boost::system::error_code e; }\n'),
        ('tests/support/slow.cpp', 'void f() { usleep(1000); }\n'),
        ('a.cpp', 'int a = 1\'000\'000;\nchar b = \'"\';\n// it\'s fine\nchar c = \'{\';\n'),
        ('a.cpp', 'void f() { usleep(1); }  // tidy: allow banned-call, because of x\n'),
    ],
)
def test_allowed_code(project, name, text):
    assert rules(project({name: text})) == []


@pytest.mark.parametrize(
    'statement',
    [
        'co_await f(Options{.name = n});',
        'co_await f({a, b});',
        'std::vector<int> v{co_await a(), co_await b()};',
        'f({co_await a()});',
        'return_to = {co_await a()};',
        'g(Options{1}) + co_await f();',
        'co_await run([s] { return s; });',
        'co_await run([&]() { return 1; });',
        'co_await run([this](int a) { return a; });',
        'auto x = ready ? Result() : co_await f();',
        'auto x = co_await f(ready ? a : b);',
        'if (auto x = co_await f(Options{}); x) {\n}',
    ],
)
def test_co_await_findings(project, statement):
    assert 'co-await' in rules(project({'a.cpp': in_function(statement)}))


@pytest.mark.parametrize(
    'statement',
    [
        'co_await f(std::move(options));',
        'auto [ec, n] = co_await f(a[i], b);',
        'auto& [ec, n] = co_await f();',
        'if (auto x = co_await f(); x) {\n  g();\n}',
        'while (co_await more()) {\n  g();\n}',
        'for (;;) {\n  co_await f();\n}',
        'if (a) {\n  b();\n} else if (co_await f()) {\n}',
        'auto named = [](int a) -> awaitable<void> { co_await f(a); };',
        'Options o{1};\nco_await f(o);',
        '// co_await f({1});\nco_await f("{ ? [x]");',
        'co_return co_await f(a) || g();',
        'co_spawn(ex, f(Options{1}), detached);\nco_await f();',
    ],
)
def test_allowed_co_await(project, statement):
    assert rules(project({'a.cpp': in_function(statement)})) == []


def test_coroutine_lambda_captures_nothing(project):
    text = in_function('auto f = [this](int a) -> boost::asio::awaitable<void> { co_return; };')
    assert rules(project({'a.cpp': text})) == ['coroutine-lambda']


def test_heavy_headers_are_counted(project):
    include = '#include <nlohmann/json.hpp>\n'
    six = {f'a/{i}.cpp': include for i in range(6)}
    assert rules(project(six)) == []
    assert rules(project({'b/1.cpp': include, 'tests/unit/1.cpp': include})) == []
    assert rules(project({'a/sub/7.cpp': include})) == ['heavy-header']


def test_beast_is_in_two_files(project):
    root = project({f'a/{i}.cpp': '#include <boost/beast/http.hpp>\n' for i in range(3)})
    assert [(path, rule) for path, _, rule, _ in tidy.check(root)] == [('a/2.cpp', 'heavy-header')]


def test_waiver_covers_its_own_rule_only(project):
    text = '// tidy: allow banned-call, because this is a test\nint a = std::rand(); \n'
    assert rules(project({'a.cpp': text})) == ['trailing-space']


def test_include_from_the_root_is_allowed(project):
    files = {'a/b.hpp': GOOD_HEADER, 'a/b.cpp': '#include "a/b.hpp"\n'}
    assert rules(project(files)) == []
    assert rules(project({'a/c.cpp': '#include "b.hpp"\n'})) == ['include-path']


def pairs(count):
    source = '#include "a/{0}.hpp"\n\nint n::f() {{ return 1; }}\n'
    names = [f'a/{number}' for number in range(count)]
    return {name + '.hpp': GOOD_HEADER for name in names} | {
        name + '.cpp': source.format(name.removeprefix('a/')) for name in names
    }


def test_folder_size_is_limited(project):
    assert rules(project(pairs(25))) == []
    found = tidy.check(project(pairs(26)))
    assert [(path, rule) for path, _, rule, _ in found] == [('a', 'folder-size')]


METHOD = 'namespace n {{\n\nint A::{}() {{\n  return 1;\n}}\n\n}}  // namespace n\n'


def test_class_is_in_one_file(project):
    files = {'a/one.cpp': METHOD.format('f') + METHOD.format('g')}
    assert rules(project(files)) == []
    found = tidy.check(project({'a/two.cpp': METHOD.format('h')}))
    assert [finding[:3] for finding in found] == [('a/two.cpp', 3, 'split-class')]


@pytest.mark.parametrize(
    'text',
    [
        METHOD.format('h').replace('namespace n', 'namespace m'),
        METHOD.format('h').replace('A::', 'A::Impl::'),
        METHOD.format('h').replace('namespace n {', 'namespace n {\nnamespace {').replace(
            '}  // namespace n', '}\n}  // namespace n'
        ),
        METHOD.format('h').replace('int A::', 'std::map<A::Key, int> '),
        METHOD.format('h').replace('int A::', 'A::Key '),
    ],
)
def test_other_classes_may_be_in_other_files(project, text):
    assert rules(project({'a/one.cpp': METHOD.format('f'), 'a/two.cpp': text})) == []


@pytest.mark.parametrize(
    'text',
    [
        METHOD.format('A').replace('int A', 'A').replace('() {', '(int b) : b_(b) {'),
        METHOD.format('~A').replace('int A', 'A'),
        METHOD.format('operator()').replace('()()', '()(int b)'),
        METHOD.format('h').replace('int A', 'std::function<void()> A').replace('h()', 'h(B (*)())'),
        METHOD.format('h').replace('int A', 'template <class T>\nint A<T>'),
    ],
)
def test_each_kind_of_method_counts(project, text):
    files = {'a/one.cpp': METHOD.format('f'), 'a/two.cpp': text}
    assert rules(project(files)) == ['split-class']


def test_list_of_split_classes_only_shrinks(project):
    root = project({'a/one.cpp': METHOD.format('f'), 'a/two.cpp': METHOD.format('h')})

    def found(known):
        return [rule for _, _, rule, _ in tidy.check(root, None, known)]

    assert found({'n::A': 2}) == []
    assert found({'n::A': 1}) == ['split-class']
    assert found({'n::A': 3}) == ['split-class']
    assert found({'n::A': 2, 'n::B': 2}) == ['split-class']


CLASS = 'namespace n {\nstruct A {\n  int a;\n};\n}  // namespace n\n'


def test_class_is_defined_once(project):
    found = tidy.check(project({'a/one.cpp': CLASS, 'a/two.cpp': CLASS}))
    assert [finding[:3] for finding in found] == [('a/two.cpp', 2, 'class-name')]


@pytest.mark.parametrize(
    'text',
    [
        CLASS.replace('namespace n', 'namespace m'),
        CLASS.replace('A {', 'B {'),
        'namespace n {\nstruct A;\n}  // namespace n\n',
        CLASS.replace('namespace n {', 'namespace n {\nnamespace {', 1).replace('};', '};\n}'),
        'namespace n {\nstruct B {\n  struct A {\n  };\n};\n}  // namespace n\n',
    ],
)
def test_other_classes_have_names_of_their_own(project, text):
    assert rules(project({'a/one.cpp': CLASS, 'a/two.cpp': text})) == []


def test_data_is_skipped(project):
    root = project({'tests/fuzz/corpus/1': 'a\t \n\n', 'x/data/y.csv': 'a \n', 'a.golden': 'a \n'})
    assert rules(root) == []
