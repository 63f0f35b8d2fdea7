#!/usr/bin/python3
"""Checks Kubernetes manifests as a current API server would, without one. It is independent of the code in Ridgeline that
writes them.

  check_manifests.py SCHEMA FILE…

Checks every document of each FILE, YAML or JSON, against SCHEMA (job-schema-1.36.json, strict). If SCHEMA lacks the kind,
the shapes of manifests/shapes.py and kinds.py take its place. Then it checks the rules that no schema can express
(manifests/rules.py).
Prints "FILE: document N: path: what is wrong" for each fault. Ends with 1 if there is one.
"""

import json
import os
import re
import sys

import jsonschema
import yaml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "manifests"))

# pylint: disable=wrong-import-position
import kinds
import rules
import shapes


class Loader(yaml.SafeLoader):
    """Reads YAML 1.1 as kubectl does. It differs from PyYAML only where Go's library does."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is no string", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


TIMESTAMP = "tag:yaml.org,2002:timestamp"  # Go's library reads a string
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
# PyYAML requires a dot in a float.
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))
Loader.add_constructor("tag:yaml.org,2002:bool", lambda loader, node: node.value.lower() in ("y", "yes", "true", "on"))


def dotted(path):
    """Returns an error's place as kubectl writes it: spec.template.spec.containers[0].image."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".") or "(all of it)"


class Checker:
    def __init__(self, schema):
        self._definitions = {**schema["definitions"], **shapes.DEFINITIONS, **kinds.DEFINITIONS,
                             **{kinds.pod_group(version): one for version, one in kinds.POD_GROUPS.items()}}
        self._kinds = {**shapes.KINDS, **kinds.KINDS}  # kind -> (apiVersion, reference to its definition)
        for one in schema["oneOf"]:
            kind = one["allOf"][0]["properties"]["kind"]["const"]
            self._kinds[kind] = (shapes.VERSIONS[kind], one["allOf"][1]["$ref"])

    def document(self, document):
        """Returns (path, what) of each fault."""
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            return [("kind", "is missing")]
        kind = document["kind"]
        if kind == "PodGroup" and document.get("apiVersion") in kinds.POD_GROUPS:
            version, reference = document["apiVersion"], f"#/definitions/{kinds.pod_group(document['apiVersion'])}"
        elif kind in self._kinds:
            version, reference = self._kinds[kind]
        else:
            return [("kind", f"{kind} is not a kind that this check knows")]
        problems = []
        if document.get("apiVersion") != version:
            problems.append(("apiVersion", f"{document.get('apiVersion')!r}: that of a {kind} is {version}"))
        validator = jsonschema.Draft7Validator({"$ref": reference, "definitions": self._definitions})
        for error in sorted(validator.iter_errors(document), key=lambda error: [str(step) for step in error.absolute_path]):
            problems.append((dotted(error.absolute_path), error.message[:300]))
        # The rules require that the shapes are right.
        return problems or rules.of_document(document)


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.load_all(file, Loader) if document is not None]


def check(checker, path):
    """Prints a file's faults. Returns whether it has none."""
    try:
        found = documents(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        print(f"{path}: document 1: (all of it): {' '.join(str(error).split())}")
        return False
    problems = [(number, *problem) for number, document in enumerate(found, 1) for problem in checker.document(document)]
    if not found:
        problems.append((1, "(all of it)", "is empty"))
    if not problems:
        problems = rules.of_file(found)
    for number, where, what in problems:
        print(f"{path}: document {number}: {where}: {what}")
    return not problems


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: check_manifests.py SCHEMA FILE…")
    with open(sys.argv[1], encoding="utf-8") as file:
        checker = Checker(json.load(file))
    good = [check(checker, path) for path in sys.argv[2:]]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
