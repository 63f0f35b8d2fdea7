#!/usr/bin/python3
"""Validates sweeps against docs/sweep.schema.json, as an editor does: sweep_schema.py RIDGELINE SOURCE_DIR.

The schema must accept every shipped sweep, every whole sweep in docs/, and the sweeps in tests/sweep/schema/right.yaml. It
must reject those in broken.yaml, at least 30. `ridgeline plan` must agree on each sweep of tests/sweep/schema.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml


class EditorsYaml(yaml.SafeLoader):
    """YAML 1.2, as editors and Ridgeline read it: 1e-3 is a number, and `on` is text. Dates stay text."""


EditorsYaml.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^<<$", "<"),
]:
    EditorsYaml.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def documents(file):
    return [text for text in re.split(r"^---\n", file.read_text(), flags=re.M)]


def planned(ridgeline, text):
    with tempfile.TemporaryDirectory() as folder:
        sweep = pathlib.Path(folder) / "sweep.yaml"
        sweep.write_text(text)
        return subprocess.run([ridgeline, "plan", sweep, "--expand-only"], capture_output=True, text=True, timeout=60)


def main():
    ridgeline, source = sys.argv[1], pathlib.Path(sys.argv[2])
    schema = json.loads((source / "docs/sweep.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    faults = []

    def faults_of(text):
        return [
            f"{'/'.join(map(str, fault.absolute_path))}: {fault.message[:300]}"
            for fault in validator.iter_errors(yaml.load(text, EditorsYaml))
        ]

    sweeps = {file.name: file.read_text() for file in sorted((source / "sweeps").glob("*.yaml"))}
    for name, text in sweeps.items():
        if "# yaml-language-server: $schema=../docs/sweep.schema.json" not in text:
            faults.append(f"sweeps/{name} does not name its schema for editors")
    for page in sorted((source / "docs").glob("*.md")):
        for number, block in enumerate(re.findall(r"^```yaml\n(name:.*?)^```", page.read_text(), flags=re.M | re.S)):
            sweeps[f"{page.name}, whole sweep {number + 1}"] = block
    for name, text in sweeps.items():
        faults += [f"{name}: {fault}" for fault in faults_of(text)]

    right = documents(source / "tests/sweep/schema/right.yaml")
    broken = documents(source / "tests/sweep/schema/broken.yaml")
    for text in right:
        plan = planned(ridgeline, text)
        if plan.returncode != 0:
            faults.append(f"plan rejects a sweep of right.yaml:\n{text}{plan.stderr}")
        faults += [f"the schema rejects a sweep of right.yaml: {fault}\n{text}" for fault in faults_of(text)]
    for text in broken:
        plan = planned(ridgeline, text)
        if plan.returncode != 2:
            faults.append(f"plan accepts a sweep of broken.yaml:\n{text}{plan.stdout}")
        if not faults_of(text):
            faults.append(f"the schema accepts a sweep of broken.yaml:\n{text}")
    if len(broken) < 30:
        faults.append(f"broken.yaml has {len(broken)} sweeps; it needs 30")
    print(f"{len(sweeps)} sweeps of the project, {len(right)} right and {len(broken)} broken ones")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
