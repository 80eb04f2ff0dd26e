"""`dre meta-train` and `dre priors`."""

import io

import pytest

from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.transfer import prior_file
from dre_plugins.transfer.prior import Prior

FEW = ("--steps", 4)

# ---- meta-train


def test_options_reach_the_prior(dre, tasks, tmp_path):
    output = tmp_path / "p.safetensors"
    options = ("--seed", 3, "--name", "mine")
    result = dre("meta-train", tasks, tasks, "-o", output, *FEW, *options)
    assert result.stderr == ""  # no bar in a file
    prior = Prior.load(output)
    assert prior.card.name == "mine" and len(prior.card.tasks) == 6
    assert prior.card.training["seed"] == 3


def test_a_training_goes_on_from_its_checkpoint(dre, tasks, tmp_path):
    output, checkpoint = tmp_path / "p.safetensors", tmp_path / "state.ckpt"
    arguments = ("meta-train", tasks, "-o", output, *FEW, "--checkpoint", checkpoint)
    dre(*arguments)
    first = Prior.load(output)
    dre(*arguments, "--resume")
    again = Prior.load(output)
    for name, value in first.ensemble.parameters.items():
        assert (value == again.ensemble.parameters[name]).all()
    text = dre(*arguments, "--resume", "--seed", 1, code=1).stderr
    assert "other data, settings or seed" in " ".join(text.split())


def test_a_storage_is_taken_like_a_file(dre, studies, tasks, tmp_path):
    output, priors = tmp_path / "p.safetensors", []
    for source in (tasks, studies):
        dre("meta-train", source, "-o", output, *FEW)
        priors.append(Prior.load(output))
    for name, value in priors[0].ensemble.parameters.items():
        assert (value == priors[1].ensemble.parameters[name]).all()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--steps", 0], 1, "n_steps"),
        (["--device", "tpu"], 1, "'tpu'"),
        (["--seed", -1], 1, "--seed"),
        (["--seed", 2**64], 1, "--seed must be at least 0, and below"),
        (["--checkpoint", "no/such/state"], 1, "folder"),
        (["--checkpoint", ".", "--steps", 0], 1, "'.': it is a folder"),  # before the training
        (["--resume"], 2, "--checkpoint"),
        (["--threads", 999999999], 1, "--threads must be from 1 to 1024, got 999999999"),
    ],
)
def test_wrong_options_are_named(dre, tasks, tmp_path, options, code, message):
    output = tmp_path / "p.safetensors"
    assert message in dre("meta-train", tasks, "-o", output, *options, code=code).stderr
    assert not output.exists()


def test_wrong_files_are_named(dre, tasks, tmp_path):
    output = tmp_path / "p.safetensors"
    other = tmp_path / "other.json"
    other.write_text('{"x": 1}')
    assert "other.json" in dre("meta-train", other, "-o", output, code=1).stderr
    assert "no.json" in dre("meta-train", tmp_path / "no.json", "-o", output, code=1).stderr
    assert ".safetensors" in dre("meta-train", tasks, "-o", tmp_path / "p.pt", code=1).stderr


# ---- priors


def test_show(dre, prior):
    text = dre("priors", "show", prior).output
    for part in ("Three studies", "3: adult, bank, credit", "learning_rate", "log", "1 … 8"):
        assert part in text
    assert "booster is dart" in text


def test_list(dre, prior, tmp_path, monkeypatch):
    (tmp_path / "boosting.safetensors").write_bytes(prior.read_bytes())
    monkeypatch.setattr(prior_file, "CATALOGUE", tmp_path)
    (row,) = [line for line in dre("priors", "list").output.splitlines() if "boosting" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")][1:3] == ["3", "4"]
    assert "KiB" in row
    assert "Three studies" in dre("priors", "show", "boosting").output


def test_bad_priors_are_named(dre, prior, tmp_path):
    text = dre("priors", "show", "nothing", code=1).stderr
    assert "'nothing'" in text and "'universal'" in text and "None" in text and "xgboost" in text
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(prior.read_bytes()[:-50])
    assert "damaged.safetensors" in dre("priors", "show", damaged, code=1).stderr


def test_all_kinds_of_parameters_can_be_shown():
    Console = pytest.importorskip("rich.console").Console
    from dre_plugins.cli.tables import space_table

    space = SearchSpace(
        {
            "float": Float(0.0, 1.0, step=0.25),
            "integer": Integer(1, 1024, "log"),
            "normal": Normal(0.0, 2.0),
            "ordinal": Ordinal((16, 32, 64)),
            "choice": Categorical([f"c{i}" for i in range(20)]),
            "constant": Constant("[a]"),
        },
        [Condition("normal", "ordinal", (16, 32)), RangeCondition("choice", "integer", 2, None)],
        ["float"],
    )
    console = Console(width=160, markup=False, file=io.StringIO())
    console.print(space_table(space))
    text = console.file.getvalue()
    domains = ("0 … 1, step 0.25", "1 … 1024, log", "0 ± 2", "16 < 32 < 64", "c11, … 8 more")
    for part in (*domains, "'[a]'", "ordinal is 16 or 32", "2 ≤ integer", "not always known"):
        assert part in text
