"""A training script for tuners: reports a loss each epoch, and crashes where it is told to."""

import argparse
import math

from syne_tune import Reporter
from syne_tune.utils import add_config_json_to_argparse, load_config_json

parser = argparse.ArgumentParser()
for name, kind in [("lr", float), ("layers", int), ("act", str), ("epochs", int)]:
    parser.add_argument(f"--{name}", type=kind, default=1)
parser.add_argument("--crash", type=str, default="")  # the activation with which it crashes
parser.add_argument("--silent", type=str, default="")  # … and with which it reports another metric
add_config_json_to_argparse(parser)
options, _ = parser.parse_known_args()
if options.st_config_json_filename:
    config = load_config_json({"st_config_json_filename": options.st_config_json_filename})
    Reporter()(epoch=1, loss=float(len(config)))
    raise SystemExit(0)

report = Reporter()
for epoch in range(1, options.epochs + 1):
    if options.act == options.crash and epoch == options.epochs:
        raise RuntimeError("diverged")
    loss = (math.log10(options.lr) + 2) ** 2 + abs(options.layers - 3) + 1 / epoch
    if options.act == options.silent:
        report(epoch=epoch, accuracy=-loss)
    else:
        report(epoch=epoch, loss=loss, accuracy=options.layers * epoch)
