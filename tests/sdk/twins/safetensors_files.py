"""Files of Python's `safetensors`: write FOLDER makes them, check FILE reads one of ours.

`write`: a GPT of two layers under the names of Hugging Face's GPT-2 (whole.safetensors), the same
in three files with an index (model-...), and all dtypes (dtypes.safetensors). Prints a checksum.
"""

import json
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

WIDTH = 8


def gpt2():
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(shape, generator=generator)

    tensors = {'wte.weight': draw(11, WIDTH), 'ln_f.weight': draw(WIDTH), 'ln_f.bias': draw(WIDTH)}
    for layer in range(2):
        start = f'h.{layer}.'
        # Conv1D: the input is the first dimension.
        tensors[start + 'attn.c_attn.weight'] = draw(WIDTH, 3 * WIDTH)
        tensors[start + 'attn.c_attn.bias'] = draw(3 * WIDTH)
        tensors[start + 'attn.bias'] = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
        tensors[start + 'ln_1.weight'] = draw(WIDTH).to(torch.bfloat16)
        tensors[start + 'ln_1.bias'] = draw(WIDTH)
    return tensors


def dtypes():
    kinds = [
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64,
        torch.float8_e4m3fn, torch.float8_e5m2,
    ]  # fmt: skip
    tensors = [torch.arange(6).view(2, 3).to(kind) for kind in kinds]
    named = {str(each.dtype).removeprefix('torch.'): each for each in tensors}
    return {**named, 'scalar': torch.tensor(2.5), 'empty': torch.zeros(0, 4)}


def write(folder):
    folder = pathlib.Path(folder)
    tensors = gpt2()
    save_file(tensors, folder / 'whole.safetensors', metadata={'format': 'pt', 'from': 'test'})
    save_file(dtypes(), folder / 'dtypes.safetensors')
    names = sorted(tensors)
    index = {}
    for part in range(3):
        file = f'model-{part + 1:05}-of-00003.safetensors'
        own = {name: tensors[name] for name in names[part::3]}
        save_file(own, folder / file)
        index.update(dict.fromkeys(own, file))
    text = json.dumps({'metadata': {'total_size': 1}, 'weight_map': index})
    (folder / 'model.safetensors.index.json').write_text(text)
    for name in names:
        print(name, f'{tensors[name].double().sum().item():.9f}')


def check(file):
    with safe_open(file, 'pt') as opened:
        print('metadata', json.dumps(opened.metadata(), sort_keys=True))
    for name, tensor in sorted(load_file(file).items()):
        print(name, tensor.dtype, list(tensor.shape), f'{tensor.double().sum().item():.9f}')


{'write': write, 'check': check}[sys.argv[1]](sys.argv[2])
