"""The commands: one function each, which declares the arguments and calls what does the work.

A command imports what it needs when it runs, so that the other commands start without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ._console import Voice, guarded

app = typer.Typer(
    name="metricboost",
    help="Find the few variables and interactions that separate classes, and classify by them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataFile = Annotated[Path, typer.Argument(help="A CSV, Parquet, Arrow/Feather or npz file.")]
ModelFile = Annotated[Path, typer.Argument(help="A model file (.mbz).")]
Target = Annotated[str, typer.Option("--target", "-t", help="The column with the classes.")]
Drop = Annotated[list[str], typer.Option("--drop", help="A column to leave out; can be repeated.")]
Keep = Annotated[
    list[str],
    typer.Option("--keep", help="A column to use although it looks like an identifier."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", min=0)]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Number of threads; by default all cores.")
]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Give rare classes the same weight as frequent ones.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="A directory for intermediate results: a fit that was stopped continues from them.",
    ),
]
NoRows = Annotated[
    bool,
    typer.Option(
        "--no-rows",
        help="Leave the training rows out of the file. The model can then explain, not classify.",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the few variables and interactions that separate classes, and classify by them."""


@app.command()
@guarded
def fit(
    data: DataFile,
    target: Target,
    output: Output = Path("model.mbz"),
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    tune: Annotated[bool, typer.Option("--tune", help="Also choose the parameters.")] = False,
    balanced: Balanced = False,
    no_rows: NoRows = False,
    checkpoint: Checkpoint = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table and save the model."""
    from ._fit import FitOptions, FitRun, run_fit

    options = FitOptions(target, tuple(drop), tuple(keep), tune, balanced, seed)
    run = FitRun(Voice(quiet, json), jobs, checkpoint)
    run_fit(data, options, run, output, rows=not no_rows)


@app.command()
@guarded
def tune(
    data: DataFile,
    target: Target,
    output: Output = Path("model.mbz"),
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    balanced: Balanced = False,
    scoring: Annotated[
        str, typer.Option(help="brier, error, loss, or a scorer of scikit-learn such as roc_auc.")
    ] = "brier",
    cv: Annotated[int, typer.Option(help="Number of folds.", min=2)] = 5,
    n_iter: Annotated[
        int | None,
        typer.Option(
            help="Number of configurations to try, drawn at random; all by default.", min=1
        ),
    ] = None,
    no_rows: NoRows = False,
    checkpoint: Checkpoint = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table with parameters that are chosen by cross-validation."""
    from ._fit import FitOptions, FitRun, run_fit

    options = FitOptions(
        target, tuple(drop), tuple(keep), True, balanced, seed, scoring, cv, n_iter
    )
    run = FitRun(Voice(quiet, json), jobs, checkpoint)
    run_fit(data, options, run, output, rows=not no_rows)


@app.command()
@guarded
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A CSV or Parquet file; standard output by default."),
    ] = None,
    copy: Annotated[
        list[str],
        typer.Option("--copy", help="A column to copy, such as an identifier; can be repeated."),
    ] = [],  # noqa: B006
    rows: Annotated[
        int, typer.Option(help="Number of rows that are read at a time.", min=1)
    ] = 10_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify the rows of a table. The table is read in chunks and may be larger than memory."""
    from ._predict import run_predict

    run_predict(Voice(quiet, json), model, data, output, tuple(copy), rows)


@app.command()
@guarded
def explain(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Option("--data", help="A table with rows to explain.")
    ] = None,
    row: Annotated[
        list[int],
        typer.Option("--row", help="The number of a row, counted from 0; can be repeated."),
    ] = [],  # noqa: B006
    neighbors: Annotated[int, typer.Option(help="Number of neighbours of each class.", min=1)] = 3,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a model has learned or, with --data, why rows are classified as they are."""
    from ._explain import run_explain

    run_explain(Voice(quiet, json), model, data, tuple(row), neighbors)


@app.command()
@guarded
def report(
    model: ModelFile,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Rows to report on, best rows that the model has not seen."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a self-contained page about a model."""
    from ._report import run_report

    run_report(Voice(quiet, json), model, data, output, title, open_)


@app.command()
@guarded
def bench(
    data: Annotated[
        Path | None, typer.Argument(help="A table; simulated tables are used by default.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column with the classes.")
    ] = None,
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    splits: Annotated[int, typer.Option(help="Number of random 70/30 splits.", min=2)] = 5,
    tune: Annotated[bool, typer.Option("--tune", help="Include the tuned model.")] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare metricboost with other classifiers on your table."""
    from ._bench import Comparison, run_bench

    comparison = Comparison(target, tuple(drop), tuple(keep), splits, tune, seed)
    run_bench(Voice(quiet, json), data, comparison)


@app.command()
@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "demo.html"
    ),
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare classifiers on a simulated table in which only two of 500 columns matter."""
    from ._demo import run_demo

    run_demo(Voice(quiet, json), seed, output)
