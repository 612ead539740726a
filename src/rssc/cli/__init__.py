"""The command line, one module for each command; commands have no logic of their own.

Exit codes: 0 fine, 2 bad input, 3 not calibratable from this footage.
"""

import sys

import tyro
from rich.console import Console
from rich.text import Text

from rssc.cli.calibrate import Calibrate
from rssc.cli.check import Check
from rssc.cli.demo import Demo
from rssc.cli.evaluate import Evaluate
from rssc.cli.experiment import Experiment
from rssc.cli.export import Export
from rssc.cli.options import REGISTRY
from rssc.cli.rectify import Rectify
from rssc.cli.report import Report
from rssc.cli.simulate import Simulate
from rssc.errors import RsscError

COMMANDS = {
    "demo": Demo,
    "calibrate": Calibrate,
    "check": Check,
    "simulate": Simulate,
    "report": Report,
    "evaluate": Evaluate,
    "experiment": Experiment,
    "export": Export,
    "rectify": Rectify,
}


def main() -> None:
    """Entry point of the `rssc` command."""
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="rssc", description="Rolling-shutter camera self-calibration from a plain video.",
            config=(tyro.conf.OmitArgPrefixes,), registry=REGISTRY,
        )  # fmt: skip
        sys.exit(command.run(Console()))
    except RsscError as error:
        message, code = str(error), error.exit_code
    except MemoryError:
        message, code = "not enough memory for these frames; choose fewer with --frames A:B.", 2
    except OSError as error:
        message, code = f"{error.filename or 'a file'}: {error.strerror or error}.", 2
    except KeyboardInterrupt:
        sys.exit(130)
    Console(stderr=True).print(Text(f"rssc: {message}"), soft_wrap=True)
    sys.exit(code)
