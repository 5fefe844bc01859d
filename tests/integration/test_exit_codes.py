"""The exit codes: one table in common/exit_code.hpp; a page and the manual pages show it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / 'common/exit_code.hpp'
RESERVED = 'reserved: nothing ends with it yet'
SOURCES = ('launcher', 'agent', 'common')


def codes_of_the_code():
    """Name to number, in the order of the header. The base of signals is '128 + n'."""
    found = re.findall(r'^inline constexpr int (k\w+) = (\d+);$', TABLE.read_text(), re.M)
    assert len(found) == TABLE.read_text().count('inline constexpr')
    return {name: '128 + n' if name == 'kSignalBase' else number for name, number in found}


def codes_of_the_docs():
    text = (ROOT / 'docs/reference/exit-codes.md').read_text().split('\n\n')[2]
    return dict(re.findall(r'^\| (\d+(?: \+ n)?) \| (.+) \|$', text, re.M))


def codes_of_the_page(name):
    text = (ROOT / 'packaging/man' / name).read_text()
    text = text.split('.SH EXIT STATUS\n')[1].split('.SH')[0]
    entries = [entry.split('\n', 1) for entry in text.split('.TP\n')[1:]]
    number = {'.BI 128+ n': '128 + n'}
    return {number.get(head, head.removeprefix('.B ')): body for head, body in entries}


def plain(text):
    """A meaning as in both tables: one line, without marks and the full stop."""
    marks = re.sub(r'^\.\w+ |\\', '', text, flags=re.M)
    return ' '.join(marks.split()).replace(' .', '').rstrip('.').lower()


def is_used(name):
    """Whether any source file but the table itself names the code."""
    word = re.compile(rf'\b{name}\b')
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob('*.[ch]pp')]
    return any(word.search(file.read_text()) for file in files if file != TABLE)


def test_docs_and_manual_page_have_the_codes_of_the_code():
    codes = list(codes_of_the_code().values())
    assert codes == ['0', '1', '2', '3', '69', '75', '78', '128 + n']
    assert list(codes_of_the_docs()) == codes
    assert list(codes_of_the_page('cpprun.1')) == codes
    assert set(codes_of_the_page('cpprunctl.1')) <= set(codes)


def test_both_tables_agree():
    page = codes_of_the_page('cpprun.1')
    for code, meaning in codes_of_the_docs().items():
        assert plain(page[code]) == plain(meaning), code


def test_unused_code_is_reserved_in_both_tables():
    docs, page = codes_of_the_docs(), codes_of_the_page('cpprun.1')
    for name, code in codes_of_the_code().items():
        assert (RESERVED in docs[code]) == (not is_used(name)), name
        assert (RESERVED in page[code]) == (not is_used(name)), name


def test_named_codes_are_not_written_as_numbers():
    literal = re.compile(r'\b128 [+-] \w*[sS][iI][gG]\w*|\breturn (?:3|69|75|78);|'
                         r'\bk\w+ = (?:69|75|78|128);.*\b(?:exit|signal)')
    for folder in ('launcher', 'agent'):
        for file in (ROOT / folder).rglob('*.[ch]pp'):
            assert not literal.search(file.read_text()), file
