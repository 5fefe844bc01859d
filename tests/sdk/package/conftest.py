"""An installed cpprun. `torch` is LibTorch's folder."""

import pathlib
import shutil

import pytest
from installed import BUILD, Package, torch_folder


@pytest.fixture(scope='session')
def package(tmp_path_factory):
    if not (BUILD / 'CMakeCache.txt').is_file():
        pytest.skip(f'{BUILD} is not a build folder')
    made = Package(tmp_path_factory.mktemp('installed'))
    code, output = made.run('cmake', '--install', BUILD, '--prefix', made.prefix)
    assert code == 0, output
    return made


@pytest.fixture(scope='session')
def torch(package):
    """LibTorch's folder; skips where the installed cpprun has no component torch."""
    if not list(package.prefix.glob('lib*/**/cpprun-torch.cmake')):
        pytest.skip('built without LibTorch')
    return torch_folder()


@pytest.fixture
def copy(tmp_path):
    """copy(FOLDER): a user's project outside of this tree."""

    def make(folder):
        return pathlib.Path(shutil.copytree(folder, tmp_path / pathlib.Path(folder).name))

    return make
