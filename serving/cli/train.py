"""``gsa train``: snapshot, evaluate, fit, register, and promote what beats the baseline."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from serving.cli.options import AsOfOption, ConfigOption, DebugOption, OutputOption, moment_of
from serving.cli.output import Output, render
from serving.cli.root import ExitCode
from serving.cli.training import run_document, run_tables, train_on
from serving.logs import set_up_logs

__all__ = ["app"]

app = typer.Typer(add_completion=False, help="Fit, calibrate, evaluate, register.")

SplitOption = Annotated[
    float, typer.Option("--split", min=0.05, max=0.95, help="Share of the jobs, in time, before the held-out part.")
]


@app.command()
def train(
    split: SplitOption = 0.7,
    as_of: AsOfOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Fit on the history, register the models, and let the gate decide which become champion.

    Ends with 5 if the duration model was registered but not promoted: the baseline was better; with 4,
    and nothing done, if another training runs on the same home.
    """
    del debug
    set_up_logs()
    settings = load_settings(config)
    with HistoryStore.open(settings.storage.history) as store:
        run = train_on(settings, store, split, moment_of(as_of))
    render(output, run_document(run), lambda: run_tables(run))
    if run.refused:
        raise typer.Exit(ExitCode.GATE)
