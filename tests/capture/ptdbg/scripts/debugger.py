# ruff: noqa: F403, F405
"""PrecisionDebugger: steps 0 and 2, after which the program ends. Arguments: path, and `loader` to count by one."""

import sys

import torch
from net import Net, train
from ptdbg_ascend import *

by_loader = sys.argv[2:] == ["loader"]
seed_all()
net = Net()
debugger = PrecisionDebugger(dump_path=sys.argv[1], hook_name="dump", step=[0, 2], enable_dataloader=by_loader)
debugger.configure_hook(mode="api_stack")
for batch in torch.utils.data.DataLoader(torch.rand(20, 8), batch_size=4):
    if not by_loader:
        debugger.start()
    train(net, batch)
    if not by_loader:
        debugger.stop()
        debugger.step()
print("never reached")
