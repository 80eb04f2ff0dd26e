"""The package for OptunaHub: its registry's layout, loaded by `optunahub`, and its example."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

import dre_plugins

REGISTRY = Path(__file__).parents[3] / "hub"
PACKAGE = REGISTRY / "samplers" / "dre"


def test_it_has_the_files_of_the_registry_and_no_weights() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert files == {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"}
    assert (PACKAGE / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")


def test_the_front_matter_is_complete() -> None:
    _, front, text = (PACKAGE / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    entries = yaml.safe_load(front)
    names = "author title description tags optuna_versions license"
    assert entries.keys() == {*names.split()}
    assert "sampler" in entries["tags"]
    assert entries["license"] == "MIT License"  # of all contributions to the registry
    assert all(isinstance(version, str) for version in entries["optuna_versions"])
    for section in ("Abstract", "Class or Function Names", "Installation", "Example"):
        assert f"## {section}\n" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what optunahub imports
def test_optunahub_loads_it_and_its_example_runs(monkeypatch, capsys) -> None:
    optunahub = pytest.importorskip("optunahub")

    def load_module(package: str) -> Any:
        return optunahub.load_local_module(package, registry_root=str(REGISTRY))

    assert load_module("samplers/dre").DRESampler is dre_plugins.DRESampler
    monkeypatch.setattr(optunahub, "load_module", load_module)  # not from the network
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    best, _, parameters = capsys.readouterr().out.strip().splitlines()[-1].partition(" ")
    assert float(best) < 0.2
    assert "'x'" in parameters
