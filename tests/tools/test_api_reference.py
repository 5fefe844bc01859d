"""tools/api_reference.py refuses a public symbol without a text, and covers what users include."""

import shutil
import subprocess

import api_reference
import pytest

ROOT = api_reference.ROOT
UMBRELLA = '/// @file\n/// All.\n#pragma once\n\n#include "cpprun/a.hpp"\n'
HEADER = '''/// @file
/// A part.
#pragma once

/// A part of the SDK.
namespace cpprun {{
{body}
}}  // namespace cpprun
'''


def project(folder, body):
    (folder / 'worker_sdk/cpprun').mkdir(parents=True)
    (folder / 'docs').mkdir()
    (folder / 'rendezvous/client/store').mkdir(parents=True)
    shutil.copy(ROOT / 'docs/Doxyfile', folder / 'docs/Doxyfile')
    (folder / 'worker_sdk/cpprun/torch.hpp').write_text(UMBRELLA)
    (folder / 'worker_sdk/cpprun/a.hpp').write_text(HEADER.format(body=body))
    (folder / api_reference.OTHERS[0]).write_text('/// @file\n/// Nothing.\n')
    return folder


def test_headers_that_umbrellas_include_are_covered(tmp_path):
    found = api_reference.public_headers(project(tmp_path, ''))
    own = ['worker_sdk/cpprun/torch.hpp', 'worker_sdk/cpprun/a.hpp']
    assert found == [*own, *api_reference.OTHERS]


def test_the_real_headers_are_covered():
    found = api_reference.public_headers(ROOT)
    assert len(found) > 50
    assert 'worker_sdk/cpprun/snapshot/snapshot.hpp' in found
    assert 'worker_sdk/cpprun/worker/c_api.h' in found


@pytest.mark.parametrize(
    'body, findings',
    [
        ('/// Its text.\nvoid f();', []),
        ('int g();  ///< its text', []),
        ('/// @{\n/// Both.\nvoid f();\nvoid g();\n/// @}', []),
        ('namespace detail {\nvoid f();\n}', []),
        ('// No text for Doxygen.\nvoid f();', ['Member f()']),
        ('struct A {\n  int b;\n};', ['Compound cpprun::A', 'Member b (variable)']),
        ('/// A <tag>.\nvoid f();', ['Unsupported xml/html tag <tag>']),
    ],
)
def test_findings_of_doxygen(tmp_path, body, findings):
    if shutil.which('doxygen') is None:
        pytest.skip('there is no doxygen')
    folder = project(tmp_path, body)
    headers = api_reference.public_headers(folder)
    found = api_reference.run_doxygen(folder, headers, tmp_path / 'out')
    found = [text for text in found if 'worker_sdk/cpprun/a.hpp' in text]
    assert len(found) == len(findings), found
    for text, finding in zip(found, findings):
        assert finding in text


@pytest.mark.parametrize(
    'body, is_open',
    [
        ('/// @{\n/// Both.\nvoid f();\nvoid g();\n/// @}', False),
        ('/// @{\n/// Both.\nvoid f();\nvoid g();', True),
        ('/// @{\n/// @{\n/// @}\n/// @}', True),
    ],
)
def test_groups_are_closed(tmp_path, body, is_open):
    folder = project(tmp_path, body)
    found = list(api_reference.open_groups(folder, ['worker_sdk/cpprun/a.hpp']))
    assert bool(found) == is_open


def test_only_a_link_without_its_list_is_dropped(tmp_path):
    link = '<a href="#nested-classes">Classes</a> &#124;'
    (tmp_path / 'a.html').write_text(f'{link}<a href="#b">B</a>')
    (tmp_path / 'c.html').write_text(f'{link}<a name="nested-classes"></a>')
    api_reference.drop_dead_links(tmp_path)
    assert (tmp_path / 'a.html').read_text() == '<a href="#b">B</a>'
    assert (tmp_path / 'c.html').read_text().startswith(link)


def test_list_names_each_header_once():
    command = [ROOT / 'tools/api_reference.py', '--list']
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert printed == api_reference.public_headers(ROOT)
    assert len(set(printed)) == len(printed)
