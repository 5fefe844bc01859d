"""The TorchX component cpprun.ddp: TorchX's dist.ddp with cpprun as the launcher."""
import shlex
from typing import Dict, List, Optional

import torchx
from torchx import specs
from torchx.components import dist

LAUNCHER = 'torchrun '  # how the command of dist.ddp begins


def ddp(
    *script_args: str,
    script: Optional[str] = None,
    m: Optional[str] = None,
    image: str = torchx.IMAGE,
    name: str = '/',
    h: Optional[str] = None,
    cpu: int = 2,
    gpu: int = 0,
    memMB: int = 1024,
    j: str = '1x2',
    env: Optional[Dict[str, str]] = None,
    max_retries: int = 0,
    max_restarts: int = 0,
    snapshot_dir: Optional[str] = None,
    rdzv_port: int = 29400,
    mounts: Optional[List[str]] = None,
    tee: int = 3,
) -> specs.AppDef:
    """
    Runs a script on one or more nodes with cpprun as the launcher.

    Args:
        script_args: arguments of the script
        script: script or program to run within the image
        m: Python module to run instead of a script
        image: image with cpprun and the script; for local_cwd unused
        name: name of the job: {experiment}/{run}, {experiment}/ or /{run}
        h: a registered named resource, instead of cpu, gpu and memMB
        cpu: CPUs per node
        gpu: GPUs per node
        memMB: memory per node in MB
        j: [{min_nodes}:]{nodes}x{workers_per_node}
        env: variables of the workers, such as A=1,B=2
        max_retries: how often the scheduler may start the job again
        max_restarts: how often cpprun restarts all workers after a failure
        snapshot_dir: folder of the snapshots, which all nodes share
        rdzv_port: port on the first node where the nodes meet
        mounts: mounts, such as type=bind,src=/host,dst=/job[,readonly]
        tee: streams of the workers that go to console and file: 0 none, 1 stdout, 2 stderr, 3 both
    """
    app = dist.ddp(*script_args, script=script, m=m, image=image, name=name, h=h, cpu=cpu, gpu=gpu,
                   memMB=memMB, j=j, env=env, max_retries=max_retries, rdzv_port=rdzv_port,
                   mounts=mounts, tee=tee)
    role = app.roles[0]
    command = role.args[-1]  # of a shell, which replaces the variable with the first node's name
    if not command.startswith(LAUNCHER):
        raise ValueError(f'dist.ddp of this TorchX does not start torchrun: {command}')
    options = [f'--max_restarts={max_restarts}']
    if snapshot_dir is not None:
        options.append(f'--snapshot-dir={snapshot_dir}')
    role.args[-1] = f'cpprun {shlex.join(options)} {command[len(LAUNCHER):]}'
    return app
