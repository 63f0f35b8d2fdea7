#!/usr/bin/python3
"""Runs the steps of the CI files that ship, as their runners would, with the programs of a build; and reads what
`ridgeline nightly install --kubernetes` writes.

  ci_steps.py BIN DOCS

BIN: the folder with ridgeline; DOCS: that with ci/. In place of the repository there is a folder with a sweep of two
points, and the folder of the nights that the files name is in it, too. Each file is run thrice: a first night, a second
that has the first as its baseline, and a third that does not have the second, which found both points worse.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

SWEEP = """
name: nightly
defaults: {family: llama, layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 64, seq_length: 16}
matrix: {batch_size: [1, 2]}
measure: {warmup_steps: 1, steps: 3, repeats: 1}
"""


def run(steps, folder, environment):
    for name, script in steps:
        done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environment, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(f"{name}: {done.returncode}\n{done.stdout}")
        yield name, done.returncode, done.stdout


def check(condition, words):
    if not condition:
        sys.exit(f"ci_steps.py: {words}")


def github(path, folder, environment):
    job = yaml.safe_load(path.read_text())
    job = job.get("jobs", job)["gate"]
    steps = [(step["name"], step["run"]) for step in job["steps"] if "run" in step]
    check(len(steps) == 2, "steps of GitHub's file")
    summary = folder / "summary.md"
    summary.write_text("")
    environment |= {"GITHUB_STEP_SUMMARY": str(summary)}
    said = ""
    for name, code, output in run(steps, folder, environment):
        check(code == 0, f"GitHub: {name} ended with {code}")
        said += output
    check("\n::warning title=INCONCLUSIVE" in said, "no annotations")
    check("INCONCLUSIVE" in summary.read_text(), "no summary")
    paths = next(step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    for path in paths.splitlines():
        check(list(folder.glob(path.replace("${{ env.RIDGELINE_NIGHTS }}", "nights"))), f"GitHub: no artifact {path}")


def gitlab(path, folder, environment):
    job = yaml.safe_load(path.read_text())["nightly"]
    allowed = job["allow_failure"]["exit_codes"]
    for name, code, _ in run([(line, line) for line in job["script"] + job["after_script"]], folder, environment):
        check(code in (0, allowed), f"GitLab: {name} ended with {code}")
    for kind, file in job["artifacts"]["reports"].items():
        check((folder / file).stat().st_size > 0, f"no {kind} report")
    for path in job["artifacts"]["paths"]:
        check((folder / path / "index.html").exists(), f"GitLab: no artifact {path}")


def found_worse(record, findings):
    """As if the night had found its points worse, which this machine's noise would decide."""
    night = json.loads(record.read_text())
    night["worse"] = [[each["point_id"], each["setup"]] for each in findings]
    record.write_text(json.dumps(night))


def kubernetes(binaries):
    """The sweep that a pod gets is the one that was given, whatever its first lines look like."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-ci-") as name:
        sweep = pathlib.Path(name) / "sweep.yaml"
        for text in (SWEEP, "  # a comment, indented\n" + SWEEP, SWEEP.replace("\n", "\r\n")):
            sweep.write_text(text)
            done = subprocess.run([binaries / "ridgeline", "nightly", "install", sweep, "--kubernetes"], text=True,
                                  check=True, stdout=subprocess.PIPE)
            documents = list(yaml.safe_load_all(done.stdout))
            check([each["kind"] for each in documents] == ["ConfigMap", "PersistentVolumeClaim", "CronJob"], "kinds")
            check(documents[0]["data"]["sweep.yaml"].strip("\n") == text.replace("\r", "").strip("\n"), "the sweep")


def main():
    binaries, docs = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    for file, steps in (("github-actions.yml", github), ("gitlab-ci.yml", gitlab)):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ridgeline-ci-"))
        try:
            (folder / "sweeps").mkdir()
            (folder / "sweeps/nightly.yaml").write_text(SWEEP)
            environment = os.environ | {"PATH": f"{binaries}:{os.environ['PATH']}", "RIDGELINE_NIGHTS": str(folder / "nights")}
            for runs_before in (0, 1, 1):
                steps(docs / "ci" / file, folder, environment)
                findings = json.loads((folder / "nights/last/gate.json").read_text())["findings"]
                check([each["base_runs"] for each in findings] == [runs_before] * len(findings),
                      f"the baseline is not of {runs_before} nights: {findings}")
                if runs_before == 1:
                    found_worse(folder / "nights/last/night.json", findings)
        finally:
            shutil.rmtree(folder)
    kubernetes(binaries)


if __name__ == "__main__":
    main()
