"""The documentation's site in a browser: diagrams, search, and nothing from another host."""

import functools
import http.server
import pathlib
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MKDOCS = ROOT / 'build/venv-docs/bin/mkdocs'
# The addresses that a page has loaded, of other hosts.
ELSEWHERE = """
    return performance.getEntriesByType('resource').map(entry => entry.name)
        .filter(name => !name.startsWith(location.origin) && !/^(data|blob):/.test(name));
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """The address of a server of the built site."""
    if not MKDOCS.exists():
        pytest.skip('MkDocs is not installed: tools/deps.sh --docs')
    folder = tmp_path_factory.mktemp('site')
    subprocess.run([MKDOCS, 'build', '-q', '-d', folder], cwd=ROOT, check=True, timeout=300)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_address[1]}'
        server.shutdown()


@pytest.mark.parametrize('page', ['restart', 'leases'])
def test_a_diagram_is_drawn_without_another_host(browser, site, page):
    browser.opens(f'{site}/explanation/{page}.html')
    # The theme draws into a closed shadow root, which replaces the text of the diagram.
    drawn = browser.wait("document.querySelector('div.mermaid')?.getBoundingClientRect().height")
    assert drawn > 200
    assert browser.run(ELSEWHERE) == []


def test_search_finds_a_page_without_another_host(browser, site):
    browser.opens(f'{site}/index.html?q=fencing')
    found = browser.wait(
        "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href).join(' ')"
    )
    assert 'explanation/leases.html' in found
    assert browser.run(ELSEWHERE) == []
