"""Files that other programs read, held to the schemas that their makers publish (check-jsonschema brings these along)."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import yaml
from jsonschema.validators import validator_for


def assert_schema(file: Path, name: str) -> None:
    """The YAML file has the form of a schema: compose-spec, github-workflows, gitlab-ci."""
    folder = files("check_jsonschema.builtin_schemas.vendor")
    schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    kind = validator_for(schema)
    document = yaml.safe_load(file.read_text().replace("\non:", "\n'on':"))  # YAML 1.1 takes this word for "true"
    wrong = [
        f"{'.'.join(map(str, one.absolute_path))}: {one.message[:300]}" for one in kind(schema).iter_errors(document)
    ]
    assert not wrong, wrong
