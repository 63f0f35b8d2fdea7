"""JSON schemas of the kinds that the schema from Kubernetes' own sources leaves out. They are as strict as that schema:
unknown fields are errors. They have only what Ridgeline's manifests may contain."""

META = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
QUANTITIES = {"type": "object",
              "additionalProperties": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}}
STRING, BOOLEAN, INTEGER = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}


def sequence(of, least=0):
    return {"type": "array", "items": of, "minItems": least}


STRINGS = sequence(STRING)
STRING_MAP = {"type": "object", "additionalProperties": STRING}


def shape(required=(), **properties):
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}


def kind(required=(), **properties):
    return shape(("apiVersion", "kind", "metadata", *required), apiVersion=STRING, kind=STRING, metadata=META, **properties)


RULES = sequence(shape(("verbs",), apiGroups=STRINGS, resources=STRINGS, resourceNames=STRINGS, nonResourceURLs=STRINGS,
                       verbs=sequence(STRING, 1)))
BINDING = {
    "roleRef": shape(("apiGroup", "kind", "name"), apiGroup={"const": "rbac.authorization.k8s.io"},
                     kind={"enum": ["Role", "ClusterRole"]}, name=STRING),
    "subjects": sequence(shape(("kind", "name"), kind={"enum": ["User", "Group", "ServiceAccount"]}, name=STRING,
                               namespace=STRING, apiGroup=STRING)),
}
# A line of a kustomization's configMapGenerator or secretGenerator.
GENERATOR = shape(("name",), name=STRING, namespace=STRING, behavior={"enum": ["create", "replace", "merge"]}, files=STRINGS,
                  literals=STRINGS, envs=STRINGS, options={"type": "object"}, type=STRING)
TARGET = shape((), group=STRING, version=STRING, kind=STRING, name=STRING, namespace=STRING, labelSelector=STRING,
               annotationSelector=STRING)

DEFINITIONS = {
    "Role": kind(("rules",), rules=RULES),
    "ClusterRole": kind(("rules",), rules=RULES, aggregationRule={"type": "object"}),
    "RoleBinding": kind(("roleRef",), **BINDING),
    "ClusterRoleBinding": kind(("roleRef",), **BINDING),
    "ServiceAccount": kind(automountServiceAccountToken=BOOLEAN, imagePullSecrets=sequence(shape(("name",), name=STRING)),
                           secrets=sequence({"type": "object"})),
    "Secret": kind(type=STRING, data=STRING_MAP, stringData=STRING_MAP, immutable=BOOLEAN),
    "ResourceQuota": kind(("spec",), spec=shape((), hard=QUANTITIES, scopes=STRINGS, scopeSelector={"type": "object"})),
    "PersistentVolume": kind(("spec",), spec=shape(
        ("capacity", "accessModes"), capacity=QUANTITIES, accessModes=sequence(STRING, 1), storageClassName=STRING,
        volumeMode={"enum": ["Filesystem", "Block"]}, mountOptions=STRINGS, nodeAffinity={"type": "object"},
        persistentVolumeReclaimPolicy={"enum": ["Retain", "Delete", "Recycle"]}, claimRef={"type": "object"},
        hostPath=shape(("path",), path=STRING, type=STRING), local=shape(("path",), path=STRING, fsType=STRING),
        nfs=shape(("server", "path"), server=STRING, path=STRING, readOnly=BOOLEAN), csi={"type": "object"})),
    # This kind is Kueue's, with the fields for one team's quota of GPUs.
    "LocalQueue": kind(("spec",), spec=shape(("clusterQueue",), clusterQueue=STRING, stopPolicy=STRING)),
    "Kustomization": shape(
        ("apiVersion", "kind"), apiVersion=STRING, kind=STRING, metadata=META, resources=STRINGS, components=STRINGS,
        namespace=STRING, namePrefix=STRING, nameSuffix=STRING, commonLabels=STRING_MAP, commonAnnotations=STRING_MAP,
        labels=sequence(shape(("pairs",), pairs=STRING_MAP, includeSelectors=BOOLEAN, includeTemplates=BOOLEAN)),
        images=sequence(shape(("name",), name=STRING, newName=STRING, newTag=STRING, digest=STRING)),
        configMapGenerator=sequence(GENERATOR), secretGenerator=sequence(GENERATOR),
        generatorOptions=shape((), disableNameSuffixHash=BOOLEAN, labels=STRING_MAP, annotations=STRING_MAP,
                               immutable=BOOLEAN),
        patches=sequence(shape((), path=STRING, patch=STRING, target=TARGET, options={"type": "object"})),
        replicas=sequence(shape(("name", "count"), name=STRING, count=INTEGER)),
        replacements=sequence({"type": "object"})),
}

RBAC = "rbac.authorization.k8s.io/v1"
VERSIONS = {
    "Job": "batch/v1", "CronJob": "batch/v1", "Service": "v1", "ConfigMap": "v1", "Namespace": "v1",
    "PersistentVolumeClaim": "v1", "PriorityClass": "scheduling.k8s.io/v1", "Role": RBAC, "ClusterRole": RBAC,
    "RoleBinding": RBAC, "ClusterRoleBinding": RBAC, "ServiceAccount": "v1", "Secret": "v1", "ResourceQuota": "v1",
    "PersistentVolume": "v1", "LocalQueue": "kueue.x-k8s.io/v1beta1", "Kustomization": "kustomize.config.k8s.io/v1beta1",
}
KINDS = {name: (VERSIONS[name], f"#/definitions/{name}") for name in DEFINITIONS}
