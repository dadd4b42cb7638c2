"""Folders and draft heads for tests of patch and unpatch."""

import hashlib
import json
import os
import random
import shutil

import cli_support as cli

TRUNK_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def write_safetensors(file, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    return file


def read_safetensors(file):
    header, data = cli.safetensors(file)
    metadata = header.pop("__metadata__", {})
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


def random_bf16(seed, count):
    numbers = random.Random(seed)
    # Between 2^-8 and 2^-4, either sign: 16 bits with an exponent of 119 to 122.
    return b"".join((numbers.randrange(119 << 7, 123 << 7) | numbers.randrange(2) << 15)
                    .to_bytes(2, "little") for _ in range(count))


def head_tensors(model, seed=1):
    """A head for a folder of the family llama, in the order of its names."""
    shapes = {}
    for file in sorted(os.listdir(model)):
        if not file.endswith(".safetensors"):
            continue
        for name, (_, shape, _) in read_safetensors(os.path.join(model, file))[0].items():
            if name.startswith("model.layers.0."):
                shapes["mtp." + name.removeprefix("model.")] = shape
    with open(os.path.join(model, "config.json"), encoding="utf-8") as config:
        dim = json.load(config)["hidden_size"]
    shapes.update({"mtp.fc.weight": [dim, 2 * dim], "mtp.norm.weight": [dim],
                   "mtp.pre_fc_norm_embedding.weight": [dim],
                   "mtp.pre_fc_norm_hidden.weight": [dim]})
    tensors = {}
    for i, (name, shape) in enumerate(sorted(shapes.items())):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = ("BF16", shape, random_bf16((seed << 10) + i, count))
    return tensors


METADATA = {"format": "pt", "paceline.head": "1", "paceline.family": "llama",
            "paceline.tap": "after", "paceline.note": "kept"}


def head(model, name="head.safetensors", seed=1, change=None, metadata=None):
    """A head file for the model; `change` alters its tensors first."""
    tensors = head_tensors(model, seed)
    if change is not None:
        change(tensors)
    return write_safetensors(cli.path(name), tensors, METADATA if metadata is None else metadata)


def single(name):
    """One file, no index."""
    folder = cli.path(name)
    shutil.copytree(cli.model("bf16"), folder)
    return folder


def shard(folder, tensors, files, index=True, names=None):
    """Writes `tensors` into so many shards, with an index that has an entry of its own."""
    os.remove(os.path.join(folder, "model.safetensors"))
    weight_map = {}
    for i in range(files):
        file = f"model-{i + 1:05}-of-{files:05}.safetensors"
        part = {name: tensors[name] for name in (names or sorted(tensors))[i::files]}
        write_safetensors(os.path.join(folder, file), part, {"format": "pt", "shard": str(i)})
        weight_map.update(dict.fromkeys(part, file))
    if index:
        with open(os.path.join(folder, "model.safetensors.index.json"), "w",
                  encoding="utf-8") as out:
            json.dump({"metadata": {"total_size": 1, "note": "n"}, "weight_map": weight_map}, out)
    return folder


def sharded(name, index=True):
    folder = single(name)
    tensors, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    return shard(folder, tensors, 3, index)


def with_head(name, files=3):
    """A checkpoint that holds a head from the start: in shards that the trunk shares and one of its
    own, or (files = 1) in the one file."""
    folder = single(name)
    whole = os.path.join(folder, "model.safetensors")
    tensors, metadata = read_safetensors(whole)
    old = head_tensors(folder, seed=77)
    if files == 1:
        write_safetensors(whole, {**tensors, **old}, metadata)
        return folder
    first = {key: old.pop(key) for key in list(old)[:4]}
    shard(folder, {**tensors, **first}, files - 1)
    own = os.path.join(folder, "model-mtp.safetensors")
    write_safetensors(own, old, {"format": "pt"})
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, encoding="utf-8") as text:
        json_index = json.load(text)
    json_index["weight_map"].update(dict.fromkeys(old, "model-mtp.safetensors"))
    with open(index, "w", encoding="utf-8") as text:
        json.dump(json_index, text)
    return folder


def hub(name):
    """A snapshot of a hub's cache: links into blobs. The folder, and that of the blobs."""
    top = cli.path(name)
    snapshot = os.path.join(top, "models--a--b", "snapshots", "0123")
    blobs = os.path.join(top, "models--a--b", "blobs")
    source = sharded(name + " source")
    os.makedirs(snapshot)
    os.makedirs(blobs)
    for file in os.listdir(source):
        digest = hashlib.sha256(file.encode()).hexdigest()
        shutil.move(os.path.join(source, file), os.path.join(blobs, digest))
        os.symlink(os.path.join("..", "..", "blobs", digest), os.path.join(snapshot, file))
    return snapshot, blobs


def state(folder):
    """Every file below the folder: its bytes' digest, or where it leads as a link."""
    found = {}
    for top, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(top, file)
            name = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[name] = "link " + os.readlink(path)
            else:
                with open(path, "rb") as opened:
                    found[name] = hashlib.sha256(opened.read()).hexdigest()
    return found


def loaded(folder):
    """What a loader that goes by the index takes; None where the program refuses the folder. The
    names that a loader of all files meets must differ."""
    refused = cli.run("inspect", folder, "--threads", "1")
    if refused.returncode != 0:
        told = refused.stderr.decode()
        assert "unfinished patch" in told and "unpatch" in told, told
        return None
    index = os.path.join(folder, "model.safetensors.index.json")
    contents = {file: read_safetensors(os.path.join(folder, file))[0]
                for file in os.listdir(folder) if file.endswith(".safetensors")}
    all_names = [name for tensors in contents.values() for name in tensors]
    assert len(all_names) == len(set(all_names)), "a name in two files"
    if not os.path.exists(index):
        if "model.safetensors" in contents:
            return contents["model.safetensors"]
        return {name: tensor for tensors in contents.values() for name, tensor in tensors.items()}
    with open(index, encoding="utf-8") as text:
        weight_map = json.load(text)["weight_map"]
    return {name: contents[file][name] for name, file in weight_map.items()}
