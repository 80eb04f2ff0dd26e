"""The program `dre`: all commands, and the one place where bad input ends it."""

from dre_plugins.cli.errors import command_line
from dre_plugins.cli.importing import importing
from dre_plugins.cli.memory import memory
from dre_plugins.cli.priors import meta_train, priors

app = command_line(
    "dre",
    """Train priors on your past studies, and manage the memory of studies.

    Two steps lead from past studies to a prior that the next study starts from:

        dre import optuna sqlite:///studies.db -o tasks.json

        dre meta-train tasks.json -o prior.safetensors

    In Python, the prior is then `DRESampler(prior="prior.safetensors")`.
    """,
)
app.add_typer(importing, name="import")
app.command("meta-train")(meta_train)
app.add_typer(priors, name="priors")
app.add_typer(memory, name="memory")
