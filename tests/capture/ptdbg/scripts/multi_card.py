# ruff: noqa: F403, F405
"""Several cards, a process each: data parallel training. Arguments: path, and the tag."""

import sys

import torch
import torch.distributed as dist
from net import Net, train
from ptdbg_ascend import *

seed_all()
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(Net())
set_dump_path(sys.argv[1], dump_tag=sys.argv[2])
register_hook(net, acc_cmp_dump)
set_dump_switch("ON", mode="api_stack")
train(net, torch.rand(4, 8) + dist.get_rank())
dist.all_reduce(torch.ones(2))
set_dump_switch("OFF")
dist.destroy_process_group()
