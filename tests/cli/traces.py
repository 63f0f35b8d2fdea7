#!/usr/bin/python3
"""Reads the traces that `ridgeline predict` and `ridgeline-train` export with independent readers. Google's protobuf reads
Chakra's traces by a schema that is written here from MLCommons Chakra's fields. Python's json reads Chrome's trace events.

  traces.py BIN

BIN: the folder with ridgeline and ridgeline-train.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SWEEP = """
name: traces
defaults: {model: llama-124m, seq_length: 256, batch_size: 2, shard: full, ranks: 16, grad_clip: 1}
matrix: {checkpointing: [none, full]}
"""
COMPUTE, COLLECTIVE = 4, 7
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = 0, 2, 7


def check(condition, words):
    if not condition:
        sys.exit(f"traces.py: {words}")


def messages():
    """Returns the classes of GlobalMetadata and Node, with the fields that a step needs."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="ChakraProtoMsg", syntax="proto3")

    def message(name, fields):
        made = file.message_type.add(name=name)
        for number, key, kind, repeated, of in fields:
            made.field.add(name=key, number=number, type=kind, type_name=of,
                           label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL)
        return made

    attribute = message("AttributeProto", [
        (1, "name", field.TYPE_STRING, False, None), (9, "int64_val", field.TYPE_INT64, False, None),
        (13, "uint64_val", field.TYPE_UINT64, False, None), (27, "bool_val", field.TYPE_BOOL, False, None),
        (29, "string_val", field.TYPE_STRING, False, None)])
    attribute.oneof_decl.add(name="value")
    for each in list(attribute.field)[1:]:
        each.oneof_index = 0
    attributes = ".ChakraProtoMsg.AttributeProto"
    message("GlobalMetadata", [
        (1, "version", field.TYPE_STRING, False, None), (2, "attr", field.TYPE_MESSAGE, True, attributes)])
    message("Node", [
        (1, "id", field.TYPE_UINT64, False, None), (2, "name", field.TYPE_STRING, False, None),
        (3, "type", field.TYPE_INT32, False, None), (4, "ctrl_deps", field.TYPE_UINT64, True, None),
        (5, "data_deps", field.TYPE_UINT64, True, None), (6, "start_time_micros", field.TYPE_UINT64, False, None),
        (7, "duration_micros", field.TYPE_UINT64, False, None), (10, "attr", field.TYPE_MESSAGE, True, attributes)])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
            for name in ("GlobalMetadata", "Node")]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def read_chakra(path):
    """Returns the metadata and the nodes of a file, in which each message follows its length. No field may be unknown."""
    metadata, node = messages()
    data = path.read_bytes()
    read = []
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        one = (node if read else metadata)()
        check(at + size <= len(data), f"{path}: the last message is cut off")
        check(one.ParseFromString(data[at:at + size]) == size, f"{path}: message {len(read)}")
        check(len(one.UnknownFields()) == 0, f"{path}: message {len(read)} has fields that Chakra lacks")
        at += size
        read.append(one)
    return read[0], read[1:]


def value(attribute):
    return getattr(attribute, attribute.WhichOneof("value"))


def check_chakra(path, ranks, device):
    """Checks what ASTRA-sim's feeder requires: ids, dependencies on existing nodes without a cycle, and sizes."""
    metadata, nodes = read_chakra(path)
    check(metadata.version == "0.0.4", f"{path}: version {metadata.version}")
    facts = {attribute.name: value(attribute) for attribute in metadata.attr}
    check(facts["device"] == device or device in facts["device"], f"{path}: the device is not {device}: {facts}")
    ids = {node.id for node in nodes}
    check(len(ids) == len(nodes) > 0 and 0 not in ids, f"{path}: ids")
    done = set()
    end = {}
    kinds = set()
    check(sum(not node.data_deps for node in nodes) <= 2, f"{path}: nodes that wait for nothing")  # the first of each row
    for node in nodes:  # nodes come after those that they wait for, so there is no cycle
        waits = set(node.data_deps)
        check(not node.ctrl_deps and waits <= done, f"{path}: node {node.id} waits for {waits - done}")
        check(all(end[each] <= node.start_time_micros for each in waits), f"{path}: node {node.id} begins too soon")
        done.add(node.id)
        end[node.id] = node.start_time_micros + node.duration_micros
        attributes = {attribute.name: value(attribute) for attribute in node.attr}
        types = {attribute.name: attribute.WhichOneof("value") for attribute in node.attr}
        check(attributes["is_cpu_op"] is False, f"{path}: is_cpu_op of node {node.id}")
        check(node.name and attributes["phase"] in ("forward", "recompute", "backward", "optimizer"), f"{path}: words")
        if node.type == COLLECTIVE:
            check(types["comm_type"] == types["comm_size"] == "int64_val", f"{path}: types")
            check(attributes["comm_type"] in (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER), f"{path}: comm_type")
            check(attributes["comm_size"] > 0, f"{path}: comm_size of node {node.id}")
            kinds.add(attributes["comm_type"])
        else:
            check(node.type == COMPUTE, f"{path}: type {node.type}")
            check(types["num_ops"] == "int64_val" and types["tensor_size"] == "uint64_val", f"{path}: types")
            check(attributes["num_ops"] > 0 and attributes["tensor_size"] > 0, f"{path}: size of node {node.id}")
    check(kinds == ({ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER} if ranks > 1 else set()), f"{path}: collectives {kinds}")
    return nodes, max(end.values()) / 1e6


def check_chrome(path):
    """Checks the events by Chrome's rules. Each stream is a row, on which no events overlap."""
    trace = json.loads(path.read_text())
    rows = {}
    ends = {}
    events = 0
    for event in trace["traceEvents"]:
        check(event["ph"] in "MX" and event["pid"] == 0, f"{path}: {event}")
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                rows[event["tid"]] = event["args"]["name"]
            continue
        events += 1
        check(event["tid"] in rows and event["dur"] >= 0 and isinstance(event["name"], str), f"{path}: {event}")
        check(event["ts"] >= ends.get(event["tid"], 0) - 0.002, f"{path}: {event} begins before the one before it ends")
        ends[event["tid"]] = event["ts"] + event["dur"]
    check(rows == {0: "compute", 1: "communication"}, f"{path}: rows {rows}")
    return events, max(ends.values()) / 1e6


def check_both(folder, ranks, device):
    nodes, chakra_s = check_chakra(folder / "step.et", ranks, device)
    events, chrome_s = check_chrome(folder / "step.json")
    check(events == len(nodes), f"{events} events, {len(nodes)} nodes")
    check(abs(chakra_s - chrome_s) <= 0.1 * chrome_s + 1e-6, f"{chakra_s} s and {chrome_s} s")
    return chrome_s


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="ridgeline-traces-") as name:
        folder = pathlib.Path(name)
        (folder / "s.yaml").write_text(SWEEP)

        def run(*words, code=0):
            done = subprocess.run([binaries / words[0], *words[1:]], cwd=folder, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}")
            return done

        predict = ("ridgeline", "predict", "s.yaml", "--device", "p5", "-o", "json")
        point = json.loads(run(*predict).stdout)[1]
        for file in ("step.et", "step.json"):
            run(*predict, "--point", point["point"], "--export-trace", file)
        seconds = check_both(folder, 16, "p5")
        check(abs(seconds * 1e9 / point["step_ns"] - 1) < 0.01, f"{seconds} s of {point['step_ns']} ns")
        check("needs one point" in run(*predict, "--export-trace", "step.et", code=2).stderr, "two points: another message")
        check("X.json or X.et" in run(*predict, "--export-trace", "step.pb", code=2).stderr, "another suffix: another message")

        train = ("ridgeline-train", "--family", "gpt", "--layers", "2", "--hidden", "32", "--heads", "2", "--ffn", "64",
                 "--vocab", "64", "--positions", "32", "--seq-length", "32", "--batch-size", "2", "--steps", "2")
        result = folder / "result.json"
        for ranks in (1, 4):
            more = ("--ranks", str(ranks), "--communicator", "virtual", "--shard", "full", "--grad-clip",
                    "1") if ranks > 1 else ()
            for file in ("step.et", "step.json"):
                run(*train, *more, "--export-trace", file, "--result", str(result))
            seconds = check_both_measured(folder, ranks)
            steps = json.loads(result.read_text())["step_ns"]["all"][-2:]
            check(0 < seconds < 1.5 * max(steps) / 1e9, f"{seconds} s of steps of {steps} ns")
        run(*train, "--export-trace", "step.pb", code=2)
        run(*train, "--device", "meta", "--export-trace", "step.et", code=2)
        run(*train, "--export-trace", "none/such/step.et", code=14)


def check_both_measured(folder, ranks):
    # The files are from two runs, so their times differ, and only one is checked.
    nodes, _ = check_chakra(folder / "step.et", ranks, "")
    events, seconds = check_chrome(folder / "step.json")
    check(events == len(nodes), f"{events} events, {len(nodes)} nodes")
    return seconds


if __name__ == "__main__":
    main()
