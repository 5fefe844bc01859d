"""Python's counterpart of the case averages."""

import torch
from torch.optim import swa_utils


class SwaNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 7)
        self.last = torch.nn.Linear(7, 1)
        self.norm = torch.nn.BatchNorm1d(7)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


def print_state(kind, step, module):
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        numbers = [f'{value:.17g}' for value in tensor.detach().double().reshape(-1).tolist()]
        print(kind, step, name, *numbers)


def main():
    torch.manual_seed(1)
    net = SwaNet()
    ema_fn = swa_utils.get_ema_multi_avg_fn(0.9)
    half_fn = swa_utils.get_ema_multi_avg_fn(0.5)
    swa_fn = swa_utils.get_swa_multi_avg_fn()
    models = {
        'mean': swa_utils.AveragedModel(net),
        'ema': swa_utils.AveragedModel(net, multi_avg_fn=ema_fn),
        'swa': swa_utils.AveragedModel(net, multi_avg_fn=swa_fn),
        'all': swa_utils.AveragedModel(net, multi_avg_fn=half_fn, use_buffers=True),
    }
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(2)
    for step in range(6):
        sgd.zero_grad()
        x, y = torch.randn(8, 5), torch.randn(8, 1)
        torch.nn.functional.mse_loss(net(x), y).backward()
        sgd.step()
        for kind, model in models.items():
            model.update_parameters(net)
            print_state(kind, step, model)
    models['ema'].eval()
    print(f'forward {models["ema"](torch.ones(2, 5))[0].item():.17g}')


main()
