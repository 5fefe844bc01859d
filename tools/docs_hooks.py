"""Hooks of MkDocs: the pages that mkdocs.yml does not name, the C++ API, and mermaid.js."""

import importlib.util
import pathlib

import mkdocs.exceptions
import mkdocs.structure.files

# Where pages that mkdocs.yml does not name go: folder of docs/, section.
SECTIONS = {'how-to': 'How-to', 'reference': 'Reference', 'explanation': 'Explanation'}


def named(nav):
    """The pages that a navigation names."""
    for item in nav:
        for value in item.values() if isinstance(item, dict) else [item]:
            yield from named(value) if isinstance(value, list) else [value]


def on_config(config):
    known = set(named(config.nav))
    sections = {title: pages for item in config.nav for title, pages in item.items()}
    for folder, section in SECTIONS.items():
        for page in sorted((pathlib.Path(config.docs_dir) / folder).glob('*.md')):
            name = f'{folder}/{page.name}'
            if name not in known:
                sections[section].append(name)
    return config


def cpp_api(config):
    """The files that tools/api_reference.py has made, as reference/cpp-api/... of the site."""
    folder = pathlib.Path(config.docs_dir).parent / 'build/cpp-api'
    if not (folder / 'index.html').is_file():
        raise mkdocs.exceptions.PluginError('first make build/cpp-api: tools/api_reference.py')
    for path in sorted(path for path in folder.rglob('*') if path.is_file()):
        uri = f'reference/cpp-api/{path.relative_to(folder)}'
        yield mkdocs.structure.files.File.generated(config, uri, content=path.read_bytes())


def on_files(files, config):
    """Adds the C++ API, and mermaid.js (MIT licence) as the wheel of NiceGUI has it."""
    for file in cpp_api(config):
        files.append(file)
    (package,) = importlib.util.find_spec('nicegui').submodule_search_locations
    for path in sorted(pathlib.Path(package, 'elements/mermaid/dist').glob('*.js')):
        uri = f'assets/mermaid/{path.name}'
        files.append(
            mkdocs.structure.files.File.generated(config, uri, content=path.read_bytes())
        )
    return files
