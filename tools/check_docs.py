#!/usr/bin/env python3
"""Checks the links of the documentation: prints `file: what` per finding, exits 1 if it has any.

    tools/check_docs.py          # all Markdown files of the project, and the site in build/site

In Markdown each relative link leads to a file of the project and each anchor to a heading, and each
file of tests that is named in code marks exists; docs/index.md links to each page of docs/. Links
to what tools/api_reference.py makes lead to a file of the site. In the site each link leads to a
file and an anchor of the site, and no page, style or script loads a script, a style, a font or a
picture from another host.
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

# Made for the site, from headers: its folder among the pages.
GENERATED = 'docs/reference/cpp-api'
LINK = re.compile(r'\]\(([^)\s]+)(?:\s"[^"]*")?\)')
FENCE = re.compile(r'^ *(```+|~~~+).*?^ *\1 *$', re.M | re.S)
INLINE_CODE = re.compile(r'`[^`\n]*`')
TEST_NAME = re.compile(r'`(test_\w+\.py|\w+_(?:test|fuzz)\.cpp)`')
HEADING = re.compile(r'^#{1,6} +(.+?) *$', re.M)
# What a browser loads without a click.
LOADED = {'script': 'src', 'img': 'src', 'iframe': 'src', 'source': 'src', 'video': 'src'}
LOADING_LINKS = ('stylesheet', 'icon', 'preload', 'prefetch', 'preconnect', 'manifest')
STYLE_URL = re.compile(
    r'url\(\s*["\']?((?:https?:)?//[^)"\']+)|@import\s+["\']((?:https?:)?//[^"\']+)'
)
# Of the theme's own script, which the site never runs so far: the first only where the page has no
# object `mermaid` (docs/assets/mermaid.js), the second only in browsers without ResizeObserver.
THEME_LOADS = (
    'https://unpkg.com/mermaid@11/dist/mermaid.min.js',
    'https://unpkg.com/resize-observer-polyfill',
)
SCRIPT_LOAD = re.compile(r'https?://(?:unpkg\.com|[\w.]*jsdelivr\.net|cdn[\w.-]*)/[^"\'`)\s]+')


def slug(heading):
    """The anchor of a heading, as GitHub and MkDocs make it."""
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading).replace('`', '')
    text = re.sub(r'[^\w\s-]', '', text).strip().lower()
    return re.sub(r'[-\s]+', '-', text)


def anchors(path):
    return {slug(heading) for heading in HEADING.findall(FENCE.sub('', path.read_text()))}


def markdown_findings(root, files):
    for name in files:
        path = root / name
        text = INLINE_CODE.sub('', FENCE.sub('', path.read_text()))
        for target in LINK.findall(text):
            if re.match(r'[a-z]+:', target):
                continue
            place, _, anchor = target.partition('#')
            led = (path.parent / place).resolve() if place else path
            if led.is_relative_to((root / GENERATED).resolve()):
                led = root / 'build/site' / led.relative_to((root / 'docs').resolve())
            if not led.exists():
                yield name, f'the link {target} leads to no file'
            elif anchor and led.suffix == '.md' and anchor not in anchors(led):
                yield name, f'the link {target} leads to no heading'


def named_test_findings(root, files):
    tests = {path.name for path in (root / 'tests').rglob('*.*')}
    for name in files:
        for test in TEST_NAME.findall((root / name).read_text()):
            if test not in tests:
                yield name, f'there is no test {test}'


def index_findings(root, files):
    index = root / 'docs/index.md'
    places = {target.partition('#')[0] for target in LINK.findall(index.read_text())}
    for name in files:
        page = root / name
        if page.is_relative_to(index.parent) and page != index:
            if str(page.relative_to(index.parent)) not in places:
                yield name, 'docs/index.md has no link to it'


class Page(html.parser.HTMLParser):
    """The links, the anchors and the loaded addresses of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loads = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or '' for name, value in attrs}
        self.anchors.update(given[name] for name in ('id', 'name') if name in given)
        if tag == 'a' and 'href' in given:
            self.links.append(given['href'])
        if tag == 'link' and any(word in given.get('rel', '') for word in LOADING_LINKS):
            self.loads.append(given.get('href', ''))
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])


def is_elsewhere(address):
    return bool(urllib.parse.urlsplit(address).netloc)


def page_findings(site, pages, path):
    page = pages[path]
    for address in page.loads:
        if is_elsewhere(address):
            yield f'loads {address}'
    for address in page.links + [a for a in page.loads if not is_elsewhere(a)]:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        if parts.path.startswith('/'):
            led = site / parts.path.lstrip('/')
        else:
            led = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if led.is_dir():
            led /= 'index.html'
        if not led.is_file():
            yield f'the link {address} leads to no file'
        elif parts.fragment and led in pages:
            anchor = urllib.parse.unquote(parts.fragment)
            if anchor not in pages[led].anchors and not anchor.startswith('__'):
                yield f'the link {address} leads to no anchor'


def site_findings(site):
    site = site.resolve()
    pages = {path: Page(path.read_text()) for path in site.rglob('*.html')}
    if not pages:
        yield str(site), 'has no pages'
    for path in sorted(pages):
        for finding in page_findings(site, pages, path):
            yield str(path.relative_to(site)), finding
    for path in sorted(site.rglob('*.css')):
        for found in STYLE_URL.finditer(path.read_text()):
            yield str(path.relative_to(site)), f'loads {found[1] or found[2]}'
    for path in sorted(site.rglob('*.js')):
        for address in SCRIPT_LOAD.findall(path.read_text()):
            if address not in THEME_LOADS:
                yield str(path.relative_to(site)), f'loads {address}'


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard', '--', '*.md'],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
    findings = [
        *markdown_findings(root, files),
        *named_test_findings(root, files),
        *index_findings(root, files),
        *site_findings(root / 'build/site'),
    ]
    for name, text in findings:
        print(f'{name}: {text}')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
