"""Other projects' kinds of objects: JSON schemas as strict as those of shapes.py, and the custom resource definitions that
a test's API server gets. They have what Ridgeline's manifests and the doubles of the controllers use.

The fields, their types and their defaults are those of the released definitions that RELEASES names. The text is ours."""

from shapes import BOOLEAN, INTEGER, QUANTITIES, STRING, STRING_MAP, STRINGS, kind, sequence, shape

RELEASES = {"JobSet": "JobSet v0.12.0", "PyTorchJob": "Kubeflow training operator v1.9.0",
            "TrainJob": "Kubeflow Trainer v2.3.0", "TrainingRuntime": "Kubeflow Trainer v2.3.0",
            "ClusterTrainingRuntime": "Kubeflow Trainer v2.3.0"}

JOB_TEMPLATE = {"$ref": "#/definitions/io.k8s.api.batch.v1.JobTemplateSpec"}

JOB_SET = shape(
    ("replicatedJobs",),
    replicatedJobs=sequence(shape(
        ("name", "template"), name=STRING, groupName=STRING, replicas=INTEGER, template=JOB_TEMPLATE,
        dependsOn=sequence(shape(("name", "status"), name=STRING, status={"enum": ["Ready", "Complete"]})))),
    network=shape((), enableDNSHostnames=BOOLEAN, subdomain=STRING, publishNotReadyAddresses=BOOLEAN),
    successPolicy=shape(("operator",), operator={"enum": ["All", "Any"]}, targetReplicatedJobs=STRINGS),
    failurePolicy=shape(
        (), maxRestarts=INTEGER, restartStrategy={"enum": ["Recreate", "BlockingRecreate", "InPlaceRestart"]},
        rules=sequence(shape(
            ("action",), name=STRING, onJobFailureReasons=STRINGS, targetReplicatedJobs=STRINGS,
            action={"enum": ["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob",
                             "RestartJobAndIgnoreMaxRestarts"]}))),
    startupPolicy=shape(("startupPolicyOrder",), startupPolicyOrder={"enum": ["AnyOrder", "InOrder"]}),
    suspend=BOOLEAN, managedBy=STRING, ttlSecondsAfterFinished=INTEGER)

POD_TEMPLATE = {"$ref": "#/definitions/io.k8s.api.core.v1.PodTemplateSpec"}
REPLICA = shape((), replicas=INTEGER, restartPolicy=STRING, template=POD_TEMPLATE)

PYTORCH_JOB = shape(
    ("pytorchReplicaSpecs",),
    nprocPerNode=STRING,
    runPolicy=shape((), cleanPodPolicy=STRING, ttlSecondsAfterFinished=INTEGER, activeDeadlineSeconds=INTEGER,
                    backoffLimit=INTEGER, suspend=BOOLEAN, managedBy=STRING,
                    schedulingPolicy=shape((), minAvailable=INTEGER, queue=STRING, priorityClass=STRING,
                                           scheduleTimeoutSeconds=INTEGER)),
    pytorchReplicaSpecs=shape((), Master=REPLICA, Worker=REPLICA))

def of(name, namespace="core.v1"):
    return {"$ref": f"#/definitions/io.k8s.api.{namespace}.{name}"}


META_PATCH = shape((), labels=STRING_MAP, annotations=STRING_MAP)
CONTAINER_PATCH = shape(("name",), name=STRING, env=sequence(of("EnvVar")), volumeMounts=sequence(of("VolumeMount")),
                        securityContext=of("SecurityContext"))
POD_PATCH = shape(
    (), metadata=META_PATCH,
    spec=shape((), serviceAccountName=STRING, volumes=sequence(of("Volume")), initContainers=sequence(CONTAINER_PATCH),
               containers=sequence(CONTAINER_PATCH), imagePullSecrets=sequence(of("LocalObjectReference")),
               securityContext=of("PodSecurityContext"), nodeSelector=STRING_MAP, affinity=of("Affinity"),
               tolerations=sequence(of("Toleration")), terminationGracePeriodSeconds=INTEGER))
JOB_PATCH = shape((), metadata=META_PATCH, spec=shape((), template=POD_PATCH))
TRAIN_JOB = shape(
    ("runtimeRef",),
    runtimeRef=shape(("name",), name=STRING, apiGroup=STRING, kind=STRING),
    trainer=shape((), image=STRING, command=STRINGS, args=STRINGS, env=sequence(of("EnvVar")), numNodes=INTEGER,
                  resourcesPerNode=of("ResourceRequirements"), numProcPerNode=INTEGER),
    runtimePatches=sequence(shape(("manager",), manager=STRING, time=STRING, trainingRuntimeSpec=shape(
        (), template=shape((), metadata=META_PATCH, spec=shape(
            (), replicatedJobs=sequence(shape(("name",), name=STRING, template=JOB_PATCH))))))),
    suspend=BOOLEAN, activeDeadlineSeconds=INTEGER, managedBy=STRING)
RUNTIME = kind(("spec",), spec=shape(
    ("template",), mlPolicy=shape((), numNodes=INTEGER, torch={"type": "object"}), podGroupPolicy={"type": "object"},
    template=shape((), metadata=META_PATCH, spec=JOB_SET)))

DEFINITIONS = {"JobSet": kind(("spec",), spec=JOB_SET), "PyTorchJob": kind(("spec",), spec=PYTORCH_JOB),
               "TrainJob": kind(("spec",), spec=TRAIN_JOB), "TrainingRuntime": RUNTIME, "ClusterTrainingRuntime": RUNTIME}
VERSIONS = {"JobSet": "jobset.x-k8s.io/v1alpha2", "PyTorchJob": "kubeflow.org/v1",
            **dict.fromkeys(("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"), "trainer.kubeflow.org/v1alpha1")}
# Several groups have a kind of this name, so the key is the group and version.
POD_GROUPS = {
    "scheduling.volcano.sh/v1beta1": kind(("spec",), spec=shape(  # Volcano v1.15.1
        (), minMember=INTEGER, queue=STRING, priorityClassName=STRING, minResources=QUANTITIES)),
    "scheduling.x-k8s.io/v1alpha1": kind(("spec",), spec=shape(  # scheduler-plugins v0.34.7
        (), minMember=INTEGER, minResources=QUANTITIES, scheduleTimeoutSeconds=INTEGER)),
}


def pod_group(version):
    """Returns the name of the definition of this version's PodGroup."""
    return "PodGroup of " + version.split("/", maxsplit=1)[0]


KINDS = {name: (VERSIONS[name], f"#/definitions/{name}") for name in DEFINITIONS}


# --- Custom resource definitions

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def structural(schema, definitions):
    """Returns a schema in the form of a custom resource definition. That form has no references, and does not make unknown
    fields errors: a server drops them instead."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name == QUANTITY:
            return {"x-kubernetes-int-or-string": True}
        return structural(definitions[name], definitions)
    if "const" in schema:
        return {"type": "string", "enum": [schema["const"]]}
    if "enum" in schema:
        return {"type": "string", "enum": schema["enum"]}
    if isinstance(schema.get("type"), list):
        return {"x-kubernetes-int-or-string": True}
    made = {"type": schema["type"]}
    if schema["type"] == "array":
        made["items"] = structural(schema["items"], definitions)
    if schema.get("required"):
        made["required"] = schema["required"]
    if "properties" in schema:
        made["properties"] = {name: structural(one, definitions) for name, one in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = structural(schema["additionalProperties"], definitions)
    elif schema["type"] == "object":
        made["x-kubernetes-preserve-unknown-fields"] = True
    return made


def resource_definition(name, api_version, definitions):
    group, version = api_version.split("/")
    whole = POD_GROUPS[api_version] if name == "PodGroup" else DEFINITIONS[name]
    properties = {field: structural(one, definitions)
                  for field, one in whole["properties"].items() if field != "metadata"}
    properties |= {"metadata": {"type": "object"},
                   "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    singular = name.lower()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if name.startswith("Cluster") else "Namespaced",
            "names": {"kind": name, "plural": singular + "s", "singular": singular, "listKind": name + "List"},
            "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"],
                                                         "properties": properties}}}],
        },
    }
