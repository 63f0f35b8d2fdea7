#!/usr/bin/python3
"""Runs the steps of the shipped CI files like their runners, with the programs of a build. Also checks the output of
`ridgeline nightly install --kubernetes`.

  ci_steps.py BIN DOCS

BIN: the folder with ridgeline. DOCS: the folder with ci/. A folder with a sweep of two points takes the repository's place,
and also holds the nights' folder that the files name. Each file runs three times. The second night has the first as its
baseline. The third night does not have the second in its baseline, because the second found both points worse.
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
    check(len(steps) == 2, f"GitHub's file has {len(steps)} steps that run commands, not 2")
    summary = folder / "summary.md"
    summary.write_text("")
    environment |= {"GITHUB_STEP_SUMMARY": str(summary)}
    said = ""
    for name, code, output in run(steps, folder, environment):
        check(code == 0, f"GitHub: {name} ended with {code}")
        said += output
    check("\n::warning title=INCONCLUSIVE" in said, "GitHub: the steps printed no annotation")
    check("INCONCLUSIVE" in summary.read_text(), "GitHub: the steps wrote no summary")
    paths = next(step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    for path in paths.splitlines():
        check(list(folder.glob(path.replace("${{ env.RIDGELINE_NIGHTS }}", "nights"))), f"GitHub: no artifact {path}")


def gitlab(path, folder, environment):
    job = yaml.safe_load(path.read_text())["nightly"]
    allowed = job["allow_failure"]["exit_codes"]
    for name, code, _ in run([(line, line) for line in job["script"] + job["after_script"]], folder, environment):
        check(code in (0, allowed), f"GitLab: {name} ended with {code}")
    for kind, file in job["artifacts"]["reports"].items():
        check((folder / file).stat().st_size > 0, f"GitLab: the {kind} report is empty")
    for path in job["artifacts"]["paths"]:
        check((folder / path / "index.html").exists(), f"GitLab: no artifact {path}")


def found_worse(record, findings):
    """Changes the night's record as if its points had got worse. A real run would leave that to this machine's noise."""
    night = json.loads(record.read_text())
    night["worse"] = [[each["point_id"], each["setup"]] for each in findings]
    record.write_text(json.dumps(night))


def kubernetes(binaries):
    """Checks that the pod gets exactly the given sweep, whatever its first lines look like."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-ci-") as name:
        sweep = pathlib.Path(name) / "sweep.yaml"
        for text in (SWEEP, "  # a comment, indented\n" + SWEEP, SWEEP.replace("\n", "\r\n")):
            sweep.write_text(text)
            done = subprocess.run([binaries / "ridgeline", "nightly", "install", sweep, "--kubernetes"], text=True,
                                  check=True, stdout=subprocess.PIPE)
            documents = list(yaml.safe_load_all(done.stdout))
            check([each["kind"] for each in documents] == ["ConfigMap", "PersistentVolumeClaim", "CronJob"],
                  f"the documents have other kinds: {[each['kind'] for each in documents]}")
            check(documents[0]["data"]["sweep.yaml"].strip("\n") == text.replace("\r", "").strip("\n"),
                  f"the ConfigMap has another sweep: {documents[0]['data']['sweep.yaml']}")


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
                      f"the baseline does not have {runs_before} nights: {findings}")
                if runs_before == 1:
                    found_worse(folder / "nights/last/night.json", findings)
        finally:
            shutil.rmtree(folder)
    kubernetes(binaries)


if __name__ == "__main__":
    main()
