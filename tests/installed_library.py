"""Installs the build into a folder and uses what stands there as another project would: the program,
the heads that it finds, and an example built with find_package(paceline).

usage: installed_library.py REPOSITORY BUILD_FOLDER CMAKE CXX SANITIZERS
"""

import json
import pathlib
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES CXX)
find_package(paceline REQUIRED)
add_executable(consumer "{example}")
target_link_libraries(consumer PRIVATE paceline::engine)
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(repository, build, cmake, compiler, sanitizers=""):
    with tempfile.TemporaryDirectory(prefix="paceline installed ") as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        run(cmake, "--install", build, "--prefix", prefix)
        model = folder / "model"
        run(prefix / "bin/paceline", "synth", "--family", "llama", "--size", "tiny", "--type", "f32",
            "--out", model)

        # Heads and stores stand where the installed program looks for them, whole.
        heads = prefix / "share/paceline/heads"
        for kind in ("*.safetensors", "*.plstore"):
            for file in (pathlib.Path(repository) / "heads").glob(kind):
                if (heads / file.name).read_bytes() != file.read_bytes():
                    sys.exit(f"{heads / file.name} is not the one of the repository")
        told = run("env", "-C", folder, f"HOME={folder}", "XDG_DATA_HOME=", prefix / "bin/paceline",
                   "inspect", model, "--json", "-")
        reason = json.loads(told)["head"]["reason"]
        if str(heads) not in reason:
            sys.exit(f"the installed program does not look in {heads}: {reason}")

        project = folder / "project"
        project.mkdir()
        example = pathlib.Path(repository).resolve() / "examples/generate_text.cpp"
        (project / "CMakeLists.txt").write_text(PROJECT.format(example=example))
        flags = f"-fsanitize={sanitizers}" if sanitizers else ""
        run(cmake, "-S", project, "-B", project / "build", "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}",
            f"-DCMAKE_CXX_FLAGS={flags}")
        run(cmake, "--build", project / "build")
        told = run(project / "build/consumer", model, "one two three")
        if "tokens a round" not in told:
            sys.exit(f"the example on the installed library said: {told}")


if __name__ == "__main__":
    main(*sys.argv[1:])
