#!/usr/bin/python3
"""Tests check_manifests.py: it passes what a current API server accepts, and finds each breach of a rule. Ends with 77,
CTest's "skipped", if Python's modules are missing."""

import contextlib
import copy
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(FOLDER))

try:
    import yaml

    import check_manifests
except ImportError as error:
    print(f"skipped: {error} (packages.txt, \"Cluster tests\")")
    sys.exit(77)

SCHEMA = FOLDER / "job-schema-1.36.json"
CHECKER = check_manifests.Checker(json.loads(SCHEMA.read_text(encoding="utf-8")))

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: rl-0123456789
  labels: {app.kubernetes.io/name: ridgeline}
spec:
  backoffLimit: 0
  completionMode: Indexed
  completions: 2
  parallelism: 2
  ttlSecondsAfterFinished: 86400
  activeDeadlineSeconds: 4000
  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
    - action: FailJob
      onExitCodes: {containerName: main, operator: In, values: [1, 2]}
  template:
    metadata: {labels: {sweep: one}}
    spec:
      restartPolicy: Never
      subdomain: rl-0123456789
      activeDeadlineSeconds: 3600
      containers:
      - name: main
        image: ghcr.io/ridgeline/ridgeline@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        command: [ridgeline-train, --steps, "10"]
        env: [{name: NCCL_DEBUG, value: "1"}]
        resources:
          limits: {nvidia.com/gpu: 8, memory: 64Gi, hugepages-2Mi: 5120Mi}
          requests: {nvidia.com/gpu: 8, cpu: 500m, memory: 32Gi, hugepages-2Mi: 5Gi}
        volumeMounts: [{name: shm, mountPath: /dev/shm}]
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: rl-0123456789}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: rl-0123456789}}
"""
POD, MAIN = "spec.template.spec", "spec.template.spec.containers.0"


def checked(text):
    """Returns what check_manifests.py prints about a file of this text, and its exit code."""
    printed = io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, contextlib.redirect_stdout(printed):
        file.write(text)
        file.flush()
        good = check_manifests.check(CHECKER, file.name)
    return printed.getvalue(), 0 if good else 1


def put(document, path, value):
    """Sets the value at a path. None removes it."""
    *way, last = path.split(".")
    for step in way:
        document = document[int(step)] if step.isdigit() else document[step]
    if value is None:
        del document[last]
    else:
        document[last] = value


class Good(unittest.TestCase):
    def test_gang_of_two(self):
        self.assertEqual(checked(JOB + "---" + SERVICE), ("", 0))

    def test_json(self):
        self.assertEqual(checked('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}}'),
                         ("", 0))

    def test_rights(self):
        self.assertEqual(checked("""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: driver}
rules: [{apiGroups: [batch], resources: [jobs], verbs: [create, get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: driver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: driver}
subjects: [{kind: ServiceAccount, name: driver, namespace: default}]
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [driver.yaml]
"""), ("", 0))


class CommandLine(unittest.TestCase):
    def test_one_line_for_each_thing_and_exit_code_1(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as good, tempfile.NamedTemporaryFile("w") as bad:
            good.write(SERVICE)
            good.flush()
            bad.write("kind: Pod\n---\nkind: [\n")
            bad.flush()
            program = [sys.executable, FOLDER / "check_manifests.py", SCHEMA]
            self.assertEqual(subprocess.run([*program, good.name], check=False).returncode, 0)
            done = subprocess.run([*program, good.name, bad.name], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stdout.count("\n"), 1)
            self.assertTrue(done.stdout.startswith(f"{bad.name}: document 1: (all of it): "), done.stdout)


class Bad(unittest.TestCase):
    def breach(self, path, value, *said):
        job = yaml.safe_load(JOB)
        put(job, path, copy.deepcopy(value))
        output, code = checked(yaml.safe_dump(job) + "---" + SERVICE)
        self.assertEqual(code, 1, path)
        for words in said:
            self.assertIn(words, output)

    def test_rules(self):
        for breach in (
                ("spec.unknown", 1, "document 1: spec: Additional properties are not allowed ('unknown' was unexpected)"),
                ("apiVersion", "batch/v2", "apiVersion: 'batch/v2'"),
                ("metadata.name", "a" * 62, "it is longer than 63"),
                ("metadata.name", "Upper", "is no Job's name"),
                ("metadata.name", "with.dot", "is no Job's name"),
                ("metadata.labels", {"a": "b" * 64}, "is no label's value"),
                ("metadata.annotations", {"a": "b" * (256 << 10)}, "262144 is the most"),
                ("spec.suspend", False, "suspend: is there"),
                ("spec.parallelism", 1, "is not completions"),
                ("spec.completions", None, "completions: is missing"),
                ("spec.backoffLimit", -1, "backoffLimit: -1 is less than 0"),
                ("spec.activeDeadlineSeconds", 0, "activeDeadlineSeconds: 0 is less than 1"),
                ("spec.podFailurePolicy.rules.1.onExitCodes.values", [2, 1], "must be in order"),
                ("spec.podFailurePolicy.rules.1.onExitCodes.values", [0, 1], "0 with In"),
                ("spec.podFailurePolicy.rules.1.onExitCodes.containerName", "other", "there is no container 'other'"),
                ("spec.podFailurePolicy.rules.0.onPodConditions", None, "rules[0]: has both, or neither"),
                (f"{POD}.restartPolicy", "OnFailure", "needs restartPolicy: Never"),
                (f"{POD}.restartPolicy", None, "restartPolicy: 'Always' is none of"),
                (f"{POD}.activeDeadlineSeconds", 0, f"{POD}.activeDeadlineSeconds: 0"),
                (f"{POD}.subdomain", "other", "there is no Service 'other' beside it"),
                (f"{POD}.volumes", [], "there is no volume 'shm'"),
                (f"{POD}.volumes.0.hostPath", {"path": "/a"}, "has 2 sources"),
                (f"{POD}.volumes.0.emptyDir.sizeLimit", "much", "sizeLimit"),
                (f"{POD}.tolerations.0.value", "x", "is there, with Exists"),
                (f"{MAIN}.image", "Not An Image", "is no image's name"),
                (f"{MAIN}.command", "ridgeline-train", "command: 'ridgeline-train' is not of type 'array'"),
                (f"{MAIN}.env", [{"name": "A", "value": 1}], "env[0].value: 1 is not of type 'string'"),
                (f"{MAIN}.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], "'A' is there twice"),
                (f"{MAIN}.volumeMounts.0.mountPath", "dev/shm", "is no absolute path"),
                (f"{MAIN}.volumeMounts.0.subPath", "../etc", "leads out of the volume"),
                (f"{MAIN}.resources.requests", {"nvidia.com/gpu": 4}, "4 is not its limit, 8"),
                (f"{MAIN}.resources.limits", {"cpu": 1}, "nvidia.com/gpu: is missing"),
                (f"{MAIN}.resources", {"limits": {"nvidia.com/gpu": "500m"}}, "'500m' is not whole"),
                (f"{MAIN}.resources", {"limits": {"memory": "64Gb"}}, "'64Gb'"),
                (f"{MAIN}.resources", {"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}, "is more than its limit"),
                (f"{MAIN}.resources", {"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}}, "is no multiple of the page"),
                (f"{MAIN}.resources", {"limits": {"hugepages-2Mi": "4Mi"}}, "hugepages need cpu or memory"),
                (f"{MAIN}.resources", {"limits": {"gpu": 1}}, "gpu: is no resource"),
        ):
            with self.subTest(path=breach[0], value=str(breach[1])[:50]):
                self.breach(*breach)

    def test_service_that_is_not_headless(self):
        output, code = checked(JOB + "---" + SERVICE.replace("clusterIP: None, ", ""))
        self.assertEqual(code, 1)
        self.assertIn("document 2: spec.ports: is missing, and it is not headless", output)

    def test_service_of_other_pods(self):
        output, code = checked(JOB + "---" + SERVICE.replace("job-name: rl", "job-name: other"))
        self.assertEqual(code, 1)
        self.assertIn("does not select its pods", output)

    def test_cron_jobs_name(self):
        job = yaml.safe_load(JOB)
        del job["spec"]["template"]["spec"]["subdomain"]
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a" * 52},
                "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job["spec"]}}}
        self.assertEqual(checked(yaml.safe_dump(cron)), ("", 0))
        cron["metadata"]["name"] += "a"
        self.assertIn("is no CronJob's name", checked(yaml.safe_dump(cron))[0])

    def test_yaml_as_kubectl_reads_it(self):
        for written in ("yes", "y", "1e3", "0x10", "012", "1_000", "~", "1.5"):
            with self.subTest(written=written):
                output, code = checked(JOB.replace('value: "1"', f"value: {written}") + "---" + SERVICE)
                self.assertEqual(code, 1)
                self.assertIn("env[0].value: ", output)
        for written in ("2001-01-01", "0.5.0", "yess"):
            with self.subTest(written=written):
                self.assertEqual(checked(JOB.replace('value: "1"', f"value: {written}") + "---" + SERVICE), ("", 0))

    def test_a_key_twice(self):
        output, code = checked(JOB.replace("  backoffLimit: 0\n", "  backoffLimit: 0\n  backoffLimit: 1\n"))
        self.assertEqual(code, 1)
        self.assertIn("'backoffLimit' is there twice", output)


if __name__ == "__main__":
    unittest.main()
