"""`dre import`: past tasks from several sources into one file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dre_plugins.cli.console import console
from dre_plugins.cli.options import METADATA_FILES, Constraints, Output, check_writable, limits_in

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import MetaDataset

importing = typer.Typer(
    no_args_is_help=True, help="Read past studies into one file that the other commands take."
)

# Not `Path`, which would read "" as the present folder, where a script's variable is not set.
Folders = Annotated[list[str], typer.Argument(help="Experiments, or folders of experiments.")]


class Mode(str, Enum):
    """Say which values are good."""

    MIN = "min"
    MAX = "max"


@importing.command("optuna")
def import_optuna(
    url: Annotated[str, typer.Argument(help="URL of the storage.")],
    output: Output,
    study: Annotated[
        list[str] | None,
        typer.Option(help="Name of a study; repeat it for several. Without it: all."),
    ] = None,
) -> None:
    """Read the studies of an Optuna storage; it is left as it is.

    Example:

        dre import optuna sqlite:///studies.db --study wine --study iris -o tasks.json
    """
    check_writable(output, METADATA_FILES)
    from dre_plugins.adapters.optuna.sources import metadata_from_studies

    write_tasks(metadata_from_studies(url, study_names=study or None), output)


@importing.command("csv")
def import_csv(
    file: Annotated[str, typer.Argument(help="Table with a header; one row is one evaluation.")],
    output: Output,
    value: Annotated[str, typer.Option(help="Column of the metric.")],
    task: Annotated[
        str | None,
        typer.Option(help="Column that tells tasks apart. Without it: the file is one task."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of a hyper-parameter; repeat it for several. Without it: all other "
            "columns."
        ),
    ] = None,
    maximize: Annotated[
        bool, typer.Option("--maximize", help="Large values are good (without it: small ones).")
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Hyper-parameter that was searched on the log scale; can be repeated."),
    ] = None,
) -> None:
    """Read a table of evaluations.

    Empty cells are parameters that were inactive; an empty value is a failed evaluation.

    Example:

        dre import csv runs.csv --value accuracy --maximize --task dataset --log lr -o tasks.json
    """
    check_writable(output, METADATA_FILES)
    from dre_plugins.transfer.sources.tables import from_table

    metadata = from_table(
        file,
        value=value,
        task=task,
        parameters=parameter or None,
        direction="maximize" if maximize else "minimize",
        log=log or (),
    )
    good = "large" if maximize else "small (--maximize: large)"
    console().print(f"good values of {value!r}: {good}", soft_wrap=True)
    write_tasks(metadata, output)


@importing.command("ray")
def import_ray(
    folders: Folders,
    output: Output,
    metric: Annotated[
        str, typer.Option(help="The metric; nested keys are joined by a slash: eval/loss.")
    ],
    mode: Annotated[Mode, typer.Option(help="Whether small or large values are good.")],
    constraint: Constraints = None,
) -> None:
    """Read the experiments that Ray Tune has left in its folders.

    Example:

        dre import ray ~/ray_results/tune_2026 --metric accuracy --mode max -o tasks.json
    """
    check_writable(output, METADATA_FILES)
    from dre_plugins.adapters.ray_tune.sources import metadata_from_results

    limits = limits_in(constraint)
    metadata = metadata_from_results(folders, metric=metric, mode=mode.value, constraints=limits)
    write_tasks(metadata, output)


@importing.command("syne-tune")
def import_syne_tune(
    folders: Folders,
    output: Output,
    metric: Annotated[
        str | None, typer.Option(help="The metric. Without it: the experiment's first one.")
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="Whether small or large values are good. Without it: as the experiment says."
        ),
    ] = None,
    constraint: Constraints = None,
) -> None:
    """Read the experiments that Syne Tune has left in its folders.

    Example:

        dre import syne-tune ~/syne-tune/my-experiment --metric loss --mode min -o tasks.json
    """
    check_writable(output, METADATA_FILES)
    from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments

    metadata = metadata_from_experiments(
        folders,
        metric=metric,
        mode=None if mode is None else mode.value,
        constraints=limits_in(constraint),
    )
    write_tasks(metadata, output)


def write_tasks(
    metadata: MetaDataset, output: Path, nothing: str = "No task could be read"
) -> None:
    """Say what was read, and write it; if it is `nothing`, a ValueError says so."""
    console().print(metadata.summary(), soft_wrap=True)
    if not len(metadata):
        raise ValueError(f"{nothing}, so {str(output)!r} is not written.")
    metadata.save(output)
    console().print(f"written to {output}", soft_wrap=True)
