"""The commands, one function each: what they take, and what does the work.

What a command needs is imported when it runs: every other one starts without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ._console import Voice, guarded

app = typer.Typer(
    name="metricboost",
    help="Find the few variables and interactions that tell classes apart, and classify by them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataFile = Annotated[Path, typer.Argument(help="A CSV, Parquet, Arrow/Feather or npz file.")]
ModelFile = Annotated[Path, typer.Argument(help="A model file (.mbz).")]
Target = Annotated[str, typer.Option("--target", "-t", help="The column with the classes.")]
Drop = Annotated[list[str], typer.Option("--drop", help="A column to leave out; may be repeated.")]
Keep = Annotated[
    list[str], typer.Option("--keep", help="A column to keep although it looks like an identifier.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything drawn at random.", min=0)]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; -1 for all cores.")]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Count all classes alike, however rare they are.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="A directory for what was learned so far: a fit that was stopped goes on from there.",
    ),
]
NoRows = Annotated[
    bool,
    typer.Option("--no-rows", help="Keep the training rows out of the file; it cannot classify."),
]


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
    """Find the few variables and interactions that tell classes apart, and classify by them."""


@app.command()
@guarded
def fit(
    data: DataFile,
    target: Target,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.mbz"
    ),
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    tune: Annotated[bool, typer.Option("--tune", help="Choose the parameters, too.")] = False,
    balanced: Balanced = False,
    no_rows: NoRows = False,
    checkpoint: Checkpoint = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table and save the model."""
    from ._fit import FitOptions, run_fit

    options = FitOptions(target, tuple(drop), tuple(keep), tune, balanced, not no_rows, seed, jobs)
    run_fit(Voice(quiet, json), data, output, options, checkpoint)


@app.command()
@guarded
def tune(
    data: DataFile,
    target: Target,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.mbz"
    ),
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    balanced: Balanced = False,
    scoring: Annotated[
        str, typer.Option(help="brier, error, loss, or a scorer such as roc_auc.")
    ] = "brier",
    cv: Annotated[int, typer.Option(help="Folds.", min=2)] = 5,
    n_iter: Annotated[
        int | None, typer.Option(help="Try so many configurations, drawn at random.", min=1)
    ] = None,
    no_rows: NoRows = False,
    checkpoint: Checkpoint = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table, choosing the parameters by cross-validation."""
    from ._fit import FitOptions, run_fit

    options = FitOptions(
        target,
        tuple(drop),
        tuple(keep),
        True,
        balanced,
        not no_rows,
        seed,
        jobs,
        scoring,
        cv,
        n_iter,
    )
    run_fit(Voice(quiet, json), data, output, options, checkpoint)


@app.command()
@guarded
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A CSV or Parquet file; the output by default."),
    ] = None,
    copy: Annotated[
        list[str], typer.Option("--copy", help="A column to copy, such as an id; may be repeated.")
    ] = [],  # noqa: B006
    rows: Annotated[int, typer.Option(help="Rows read at a time.", min=1)] = 10_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify the rows of a table, a chunk at a time: it may be larger than memory."""
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
        list[int], typer.Option("--row", help="The number of a row, from 0; may be repeated.")
    ] = [],  # noqa: B006
    neighbors: Annotated[int, typer.Option(help="Neighbours of each class.", min=1)] = 3,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a model has learned or, with --data, why rows are classified as they are."""
    from ._explain import run_explain

    run_explain(Voice(quiet, json), model, data, tuple(row), neighbors)


@app.command()
@guarded
def report(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Option("--data", help="Rows to report on, best unseen ones.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
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
        Path | None, typer.Argument(help="A table; without one, simulations are used.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Its classes.")] = None,
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    splits: Annotated[int, typer.Option(help="Random 70/30 splits.", min=2)] = 5,
    tune: Annotated[bool, typer.Option("--tune", help="Also the tuned model.")] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hold metricboost against what you would use instead, on your table."""
    from ._bench import run_bench

    voice = Voice(quiet, json)
    run_bench(voice, data, target, tuple(drop), tuple(keep), splits, tune, seed)


@app.command()
@guarded
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="table1, table2, causes, pure, table3, figure1, ..., figure6, or all."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Repeats of every cell.", min=1)] = 20,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; all cores by default.", min=1)
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="1 repeat of small sizes: minutes, not days.")
    ] = False,
    limit: Annotated[float, typer.Option(help="CPU seconds of a cell.", min=1)] = 3600,
    results: Annotated[Path, typer.Option(help="Where cells are kept.")] = Path("studies/results"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder of the page.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Measure what is missing, or only write.")
    ] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The sDist paper's tables and figures, computed again; goes on where it was stopped."""
    from ._reproduce import Extent, run_reproduce

    output = output or Path("studies/fast" if fast else "docs")
    extent = Extent(1 if fast else repeats, fast)
    run_reproduce(Voice(quiet, json), names or [], extent, jobs, limit, results, output, run)


@app.command()
@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("demo.html"),
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Two of 500 columns decide, and only together: who finds them?"""
    from ._demo import run_demo

    run_demo(Voice(quiet, json), seed, output)
