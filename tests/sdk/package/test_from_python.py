"""docs/from_python.md: the C++ column compiles, and torch has what the Python column names."""

import ast
import re

from launches import ROOT
from torch_python import PYTHON

PAGE = (ROOT / 'docs/from_python.md').read_text()
ROWS = re.findall(r'^\| `(.+)` \| `(.+)` \|$', PAGE, re.M)
DECLARATIONS = re.search(r'```cpp\n(.*?)```', PAGE, re.S)[1]
IMPORTS = """
import torch, torch.distributed as dist, torch.nn.functional as F
import torch.distributed.optim, torch.utils.checkpoint, torch.utils.data.distributed
from torch.distributed.nn import functional
from torch.optim import lr_scheduler, swa_utils
import torch.distributed.checkpoint as dcp
"""
MODULES = {'torch', 'dist', 'F', 'functional', 'lr_scheduler', 'swa_utils', 'dcp'}


def test_there_are_forty_rows():
    assert len(ROWS) >= 40
    assert len(ROWS) == len(re.findall(r'^\| `', PAGE, re.M))


def test_cpp_column_compiles(package, torch):
    rows = [f'void row_{i}() {{ {cpp}; }}\n' for i, (_, cpp) in enumerate(ROWS)]
    source = package.prefix / 'from_python.cpp'
    source.write_text(DECLARATIONS + ''.join(rows))
    own = ('-I', package.include, '-I', package.include / 'cpprun-internal')
    folders = (torch / 'include', torch / 'include/torch/csrc/api/include')
    system = [word for folder in folders for word in ('-isystem', folder)]
    flags = ('-std=c++20', '-fsyntax-only', '-Wall', '-Wextra', '-Wno-unused', '-Werror')
    code, output = package.run('g++', *flags, '-DUSE_DISTRIBUTED', *own, *system, source)
    assert code == 0, output


def names(python):
    """Dotted names of modules in a statement: "dist.ReduceOp.MAX"."""
    for node in ast.walk(ast.parse(python)):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if text.split('.')[0] in MODULES:
                yield text


def test_torch_has_the_names_of_the_python_column(ranks):
    everything = sorted({name for python, _ in ROWS for name in names(python)})
    assert len(everything) > 40
    script = ranks.folder / 'names.py'
    script.write_text(IMPORTS + ''.join(f'{name}\n' for name in everything))
    ranks.run(PYTHON, script).well()
