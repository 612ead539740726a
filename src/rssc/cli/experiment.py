"""`rssc experiment`: the paper's studies."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg, subcommand

from rssc.cli.options import Output, Printing, PrintingOptions
from rssc.names import METHOD_NAMES, MethodName

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal

Methods = tuple[MethodName | Literal["auto"], ...]
RealMethods = tuple[Literal["colmap"] | MethodName | Literal["auto", "target"], ...]


def print_json(terminal: "Terminal", document: Mapping[str, object]) -> None:
    """One JSON object as the last line."""
    terminal.say(json.dumps(document), wrap=False)
    terminal.give(document)


@dataclass(frozen=True)
class Synthetic:
    """The paper's simulation: all methods over trajectory noise, readout ratio and pixel noise.

    Writes synthetic.csv (one row per condition, trial and method), the figure, and synthetic.md with the figure and the
    checks. The same command again resumes an interrupted study.
    """

    output: Output
    """Folder for synthetic.csv, synthetic.md, synthetic.svg and synthetic.png."""
    trials: int = 50
    """Scenes per condition."""
    seed: int = 0
    points: int = 150
    """Points in each scene."""
    jobs: Annotated[int, arg(aliases=["-j"])] = os.cpu_count() or 1
    """Local processes, with one thread each."""
    scheduler: str | None = None
    """Address of a Dask scheduler that runs the scenes instead, for instance tcp://10.0.0.1:8786."""
    methods: Methods = (*METHOD_NAMES, "auto")
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.experiments.figure import draw_figure
        from rssc.experiments.summary import summarise, summary_tables
        from rssc.experiments.synthetic import FACTORS, conditions_of, run_study
        from rssc.experiments.tables import markdown, print_tables
        from rssc.io.files import make_folder, write_text
        from rssc.runtime.extras import import_extra

        import_extra("matplotlib", "the figure")
        folder = make_folder(self.output)
        with terminal.progress() as progress:
            rows = run_study(
                folder / "synthetic.csv", trials=self.trials, seed=self.seed, points=self.points, methods=self.methods,
                jobs=self.jobs, scheduler=self.scheduler, progress=progress,
            )  # fmt: skip
        for suffix in ("svg", "png"):
            draw_figure(rows, {name: conditions_of(name) for name in FACTORS}, folder / f"synthetic.{suffix}")
        summary = summarise(rows)
        tables = summary_tables(summary)
        write_text(folder / "synthetic.md", markdown("![Median absolute errors](synthetic.png)", tables))
        print_tables(terminal.console, tables)
        terminal.say(f"Written to {folder}: synthetic.csv, synthetic.md, synthetic.svg, synthetic.png")
        print_json(terminal, summary.document())
        return 0


@dataclass(frozen=True)
class Efficiency:
    """The paper's efficiency table: time per iteration, iterations and total time of all methods, as medians."""

    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder for efficiency.md; printed only where not given."""
    trials: int = 50
    """Scenes."""
    seed: int = 0
    points: int = 60
    """Points in each scene."""
    methods: Methods = (*METHOD_NAMES, "auto")
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.experiments.efficiency import efficiency_table, measure_efficiency
        from rssc.experiments.tables import markdown, print_tables
        from rssc.io.files import make_folder, write_text

        folder = None if self.output is None else make_folder(self.output)
        with terminal.progress() as progress:
            efficiency = measure_efficiency(
                trials=self.trials, points=self.points, seed=self.seed, methods=self.methods, progress=progress
            )  # fmt: skip
        tables = [efficiency_table(efficiency)]
        if folder is not None:
            write_text(folder / "efficiency.md", markdown("Time to solve the paper's simulation.", tables))
        print_tables(terminal.console, tables)
        if folder is not None:
            terminal.say(f"Written to {folder}: efficiency.md")
        print_json(terminal, efficiency.document())
        return 0


@dataclass(frozen=True)
class Real:
    """The paper's study of real footage: COLMAP, the five methods, auto and a target on sequences with known truth.

    Writes real.csv (one row per sequence and method) and real.md. The same command again resumes an interrupted study.
    """

    output: Output
    """Folder for real.csv and real.md."""
    sources: Positional[tuple[str, ...]] = ("shared",)
    """Folders of TUM-RSVI, or folders with a truth.json beside a video or images; "shared" for the shared clips."""
    methods: RealMethods = ("colmap", *METHOD_NAMES, "auto", "target")
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.datasets import find_sequences
        from rssc.errors import InputError
        from rssc.experiments.real import run_real
        from rssc.experiments.real_table import OPENING, document, median_tables, sequence_tables
        from rssc.experiments.tables import markdown, print_tables
        from rssc.io.files import make_folder, write_text

        found = [find_sequences(source) for source in self.sources]
        recordings = [sequence for one in found for sequence in one.sequences]
        skipped = [reason for one in found for reason in one.skipped]
        if not recordings:
            raise InputError(" ".join(skipped))
        for reason in skipped:
            terminal.say(f"note: {reason}")
        folder = make_folder(self.output)
        with terminal.progress() as progress:
            rows = run_real(folder / "real.csv", recordings, self.methods, progress)
        tables = [*sequence_tables(rows), *median_tables(rows)]
        write_text(folder / "real.md", markdown(OPENING, tables))
        print_tables(terminal.console, tables)
        terminal.say(f"Written to {folder}: real.csv, real.md")
        print_json(terminal, document(rows))
        return 0


STUDIES = {"synthetic": Synthetic, "efficiency": Efficiency, "real": Real}
"""Every study is a command with `run`; another one is another row here, and in the help below."""
Study = (
    Annotated[Synthetic, subcommand("synthetic", prefix_name=False)]
    | Annotated[Efficiency, subcommand("efficiency", prefix_name=False)]
    | Annotated[Real, subcommand("real", prefix_name=False)]
)


@dataclass(frozen=True)
class Experiment:
    """Re-run the paper's studies."""

    study: Study

    @property
    def printing(self) -> Printing:
        """That of the study."""
        return self.study.printing

    def run(self, terminal: "Terminal") -> int:
        return self.study.run(terminal)
