"""Python's counterpart of the case functional: collectives with gradients."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.nn import functional


def print_numbers(name, tensor):
    numbers = ''.join(f' {value:.17g}' for value in tensor.detach().double().reshape(-1).tolist())
    sys.stdout.write(f'{name} {dist.get_rank()}{numbers}\n')
    sys.stdout.flush()


def weighted(tensor):
    if isinstance(tensor, tuple | list):
        total = torch.zeros(())
        for i, one in enumerate(tensor):
            total = total + weighted(one) * float(i + 1)
        return total
    weights = torch.arange(tensor.numel(), dtype=torch.float32).view(tensor.shape)
    return (tensor.sin() * (weights + 1 + dist.get_rank())).sum()


class Inputs:
    def __init__(self):
        self.generator = torch.Generator()
        self.generator.manual_seed(50 + dist.get_rank())
        self.all = []

    def draw(self, *shape):
        self.all.append(torch.randn(shape, generator=self.generator).requires_grad_())
        return self.all[-1]

    def print_gradients(self, name, loss):
        print_numbers(f'{name} loss', loss)
        first = torch.autograd.grad(loss, self.all, retain_graph=True, create_graph=True)
        again = torch.zeros(())
        for gradient in first:
            print_numbers(f'{name} grad', gradient)
            again = again + gradient.square().sum()
        for gradient in torch.autograd.grad(again, self.all):
            print_numbers(f'{name} second', gradient)
        self.all = []


def main():
    dist.init_process_group('gloo')
    world, rank = dist.get_world_size(), dist.get_rank()
    inputs = Inputs()
    inputs.print_gradients('all_gather', weighted(functional.all_gather(inputs.draw(3, 2).t())))
    inputs.print_gradients('all_reduce', weighted(functional.all_reduce(inputs.draw(4))))
    parts = [inputs.draw(2, 2) for _ in range(world)]
    scattered = functional.reduce_scatter(torch.empty(2, 2), parts)
    inputs.print_gradients('reduce_scatter', weighted(scattered))
    parts = [inputs.draw(3) for _ in range(world)]
    exchanged = functional.all_to_all([torch.empty(3) for _ in range(world)], parts)
    inputs.print_gradients('all_to_all', weighted(exchanged))
    takes = [i + 1 for i in range(world)]
    rows = inputs.draw(world * (rank + 1), 2)
    output = torch.empty(sum(takes), 2)
    single = functional.all_to_all_single(output, rows, takes, [rank + 1] * world)
    inputs.print_gradients('all_to_all_single', weighted(single))
    pair = dist.new_group([0, 1])
    if rank < 2:
        inputs.print_gradients('pair', weighted(functional.all_gather(inputs.draw(2), group=pair)))
    dist.destroy_process_group()


main()
