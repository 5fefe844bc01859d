"""Each finding of tools/check_docs.py has a page that causes it and a similar one that does not."""

import check_docs
import pytest

HEAD = '<html><body><h1 id="top">A</h1>'


def markdown(folder, **files):
    for name, text in files.items():
        (folder / f'{name}.md').write_text(text)
    names = [f'{name}.md' for name in files]
    return [text for _, text in check_docs.markdown_findings(folder, names)]


def site(folder, name, text):
    folder = folder / 'site'
    folder.mkdir(exist_ok=True)
    (folder / 'index.html').write_text(HEAD)
    (folder / name).write_text(text)
    return [text for _, text in check_docs.site_findings(folder)]


@pytest.mark.parametrize(
    'link, finding',
    [
        ('b.md', None),
        ('b.md#two-words-code', None),
        ('#here', None),
        ('https://example.org/x', None),
        ('c.md', 'the link c.md leads to no file'),
        ('b.md#three', 'the link b.md#three leads to no heading'),
        ('b.md#in-a-block', 'the link b.md#in-a-block leads to no heading'),
        ('#there', 'the link #there leads to no heading'),
    ],
)
def test_links_of_markdown(tmp_path, link, finding):
    other = '# B\n\n## Two words: `code`\n\n```sh\n# In a block\n```\n'
    found = markdown(tmp_path, a=f'# Here\n\nSee [b]({link}).\n', b=other)
    assert found == ([finding] if finding else [])


@pytest.mark.parametrize('name, is_made', [('index.html', True), ('gone.html', False)])
def test_links_into_the_generated_reference(tmp_path, name, is_made):
    (tmp_path / 'docs/reference').mkdir(parents=True)
    (tmp_path / 'build/site/reference/cpp-api').mkdir(parents=True)
    (tmp_path / 'build/site/reference/cpp-api/index.html').touch()
    found = markdown(tmp_path, **{'docs/reference/a': f'[a](cpp-api/{name})'})
    assert found == ([] if is_made else [f'the link cpp-api/{name} leads to no file'])


def test_links_in_code_are_no_links(tmp_path):
    assert markdown(tmp_path, a='`[a](b)`\n\n```\n[a](b)\n```\n') == []


def test_the_index_has_all_pages(tmp_path):
    (tmp_path / 'docs').mkdir()
    (tmp_path / 'docs/index.md').write_text('[a](a.md), [b](below/b.md#part)')
    pages = [f'docs/{name}.md' for name in ('index', 'a', 'below/b', 'below/c')]
    found = list(check_docs.index_findings(tmp_path, ['README.md', *pages]))
    assert found == [(pages[-1], 'docs/index.md has no link to it')]


def test_named_tests_exist(tmp_path):
    (tmp_path / 'tests' / 'unit').mkdir(parents=True)
    (tmp_path / 'tests' / 'unit' / 'a_test.cpp').touch()
    page = '`a_test.cpp`, `b_test.cpp`, `test_c.py`, `x/test_d.py`, `test_e`'
    (tmp_path / 'page.md').write_text(page)
    found = [text for _, text in check_docs.named_test_findings(tmp_path, ['page.md'])]
    assert found == ['there is no test b_test.cpp', 'there is no test test_c.py']


@pytest.mark.parametrize(
    'text, finding',
    [
        ('<a href="index.html#top">a</a>', None),
        ('<a href="https://example.org/">a</a>', None),
        ('<img src="index.html">', None),
        ('<a href="none.html">a</a>', 'the link none.html leads to no file'),
        ('<a href="index.html#none">a</a>', 'the link index.html#none leads to no anchor'),
        ('<img src="none.png">', 'the link none.png leads to no file'),
        ('<img src="https://x.org/a.png">', 'loads https://x.org/a.png'),
        ('<script src="//x.org/a.js"></script>', 'loads //x.org/a.js'),
        (
            '<link rel="stylesheet" href="https://fonts.x.org/a.css">',
            'loads https://fonts.x.org/a.css',
        ),
    ],
)
def test_pages(tmp_path, text, finding):
    assert site(tmp_path, 'a.html', HEAD + text) == ([finding] if finding else [])


@pytest.mark.parametrize(
    'name, text, finding',
    [
        ('a.css', 'a { background: url(b.png) }', None),
        ('a.css', '@font-face { src: url("https://x.org/f.woff2") }', 'loads https://x.org/f.woff2'),
        ('a.css', '@import "//x.org/a.css";', 'loads //x.org/a.css'),
        ('a.js', 'load("https://example.org/")', None),
        ('a.js', 'load("https://unpkg.com/x.js")', 'loads https://unpkg.com/x.js'),
    ],
)
def test_styles_and_scripts(tmp_path, name, text, finding):
    assert site(tmp_path, name, text) == ([finding] if finding else [])


def test_an_empty_site_is_a_finding(tmp_path):
    assert [text for _, text in check_docs.site_findings(tmp_path)] == ['has no pages']
