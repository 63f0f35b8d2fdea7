#!/usr/bin/python3
"""Runs the steps of the CI files that ship, as their runners would, with the programs of a build; and reads what
`ridgeline nightly install --kubernetes` writes.

  ci_steps.py BIN DOCS

BIN: the folder with ridgeline; DOCS: that with ci/. In place of the repository there is a folder with a sweep of two
points, and the database that the files name is in it, too. Each file is run twice: a first night, and a second.
"""

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
        yield name, done.returncode


def check(condition, words):
    if not condition:
        sys.exit(f"ci_steps.py: {words}")


def github(path, folder, environment, night):
    job = yaml.safe_load(path.read_text())
    job = job.get("jobs", job)["gate"]
    steps = [(step["name"], step["run"]) for step in job["steps"] if "run" in step]
    check(len(steps) == 3, "steps of GitHub's file")
    summary = folder / "summary.md"
    summary.write_text("")
    environment |= {"NIGHT": night, "GITHUB_STEP_SUMMARY": str(summary)}
    for name, code in run(steps, folder, environment):
        check(code == 0, f"GitHub: {name} ended with {code}")
    check("INCONCLUSIVE" in summary.read_text(), "no summary")


def gitlab(path, folder, environment, night):
    job = yaml.safe_load(path.read_text())["nightly"]
    allowed = job["allow_failure"]["exit_codes"]
    environment |= {"NIGHT": night}
    for name, code in run([(line, line) for line in job["script"]], folder, environment):
        check(code in (0, allowed), f"GitLab: {name} ended with {code}")
    for kind, file in job["artifacts"]["reports"].items():
        check((folder / file).stat().st_size > 0, f"no {kind} report")


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
            environment = os.environ | {"PATH": f"{binaries}:{os.environ['PATH']}", "RIDGELINE_DB": str(folder / "n.db")}
            for night in ("night-1", "night-2"):
                steps(docs / "ci" / file, folder, environment, night)
                check((folder / "gate.xml").exists() and (folder / "pages/index.html").exists(), "no gate, or no pages")
        finally:
            shutil.rmtree(folder)
    kubernetes(binaries)


if __name__ == "__main__":
    main()
