"""Write empty stand-ins for the CUDA libraries that PyTorch's PyPI wheel links against.

The PyPI wheel of PyTorch for Linux is a CUDA build; its CUDA libraries are separate wheels of several gigabytes that a
CPU-only run never calls. Installed with `pip install --no-deps torch==...`, the wheel fails to load only because these
libraries are missing. This script reads what the wheel's own libraries need (readelf, nm), compiles one small shared
library for each missing name, whose functions return an error code, and puts them where the wheel looks for them.

    pip install --no-deps torch==2.15.0 && python demo/torch_stubs.py

Needs gcc and binutils. Run once after the installation; it does nothing to the wheel's own files.
"""
import glob
import os
import re
import site
import subprocess
import tempfile

SITE = site.getsitepackages()[0]
TORCH = SITE + "/torch/lib"
OUT = SITE + "/nvidia/cu13/lib"

# Functions whose result PyTorch reads as something other than an error code.
SPECIAL = {
    "cudaGetErrorString": 'const char *cudaGetErrorString(int e){return "no CUDA here";}',
    "cudaGetErrorName": 'const char *cudaGetErrorName(int e){return "cudaErrorNoDevice";}',
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int *n){*n=0;return 100;}",
    "cudaGetLastError": "int cudaGetLastError(void){return 0;}",
    "cudaPeekAtLastError": "int cudaPeekAtLastError(void){return 0;}",
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int *v){*v=0;return 0;}",
    "cudaRuntimeGetVersion": "int cudaRuntimeGetVersion(int *v){*v=13000;return 0;}",
}


def run(*args):
    return subprocess.run(args, capture_output=True, text=True).stdout


def main():
    libs = glob.glob(TORCH + "/*.so*")
    os.makedirs(OUT, exist_ok=True)
    needed = {n for f in libs for n in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", f))}
    have = {os.path.basename(f) for f in libs}
    cached = run("ldconfig", "-p")
    system, missing = [], []
    for name in sorted(needed - have):
        hit = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", cached, re.M)
        if hit:
            system.append(hit.group(1))
        elif not name.startswith("ld-linux"):
            missing.append(name)

    defined = set()
    for f in libs + system:
        for line in run("nm", "-D", "--defined-only", f).splitlines():
            defined.add(line.split()[-1].split("@")[0])
    undefined, symbol_version = set(), {}
    versions = {}  # library -> symbol versions asked of it
    for f in libs:
        for line in run("nm", "-D", "--undefined-only", f).splitlines():
            kind, name = line.split()[-2:]
            if "@" in name:
                name, version = name.split("@", 1)
                symbol_version[name] = version.lstrip("@")
            if kind == "U" and name not in defined and re.match(r"^[A-Za-z]\w*$|^__cuda\w*$", name) and not name.startswith("Py"):
                undefined.add(name)
        current = None
        for line in run("readelf", "-VW", f).splitlines():
            if m := re.search(r"File: (\S+)", line):
                current = m.group(1)
            if (m := re.search(r"Name: (\S+)\s+Flags", line)) and current in missing:
                versions.setdefault(current, set()).add(m.group(1))

    library_of = {v: lib for lib, vs in versions.items() for v in vs}
    symbols = {lib: [] for lib in missing}
    home = next((m for m in missing if m not in versions and m != "libcuda.so.1"), missing[0])
    for name in sorted(undefined):
        symbols[library_of.get(symbol_version.get(name), home)].append(name)

    with tempfile.TemporaryDirectory() as tmp:
        for lib in missing:
            if lib == "libcuda.so.1":
                continue  # opened only when a device is used
            source, script = tmp + "/s.c", tmp + "/s.map"
            with open(source, "w") as f:
                f.writelines(SPECIAL.get(s, f"int {s}(void){{return 100;}}") + "\n" for s in symbols[lib])
            args = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-O1", "-o", f"{OUT}/{lib}", f"-Wl,-soname,{lib}", source]
            if lib in versions:
                with open(script, "w") as f:
                    for v in sorted(versions[lib]):
                        names = [s for s in symbols[lib] if symbol_version.get(s) == v]
                        f.write(f"{v} {{ " + ("global: " + " ".join(s + ";" for s in names) if names else "") + " };\n")
                args.append(f"-Wl,--version-script={script}")
            subprocess.check_call(args)
    print(f"{len(missing)} libraries, {len(undefined)} functions, in {OUT}")


if __name__ == "__main__":
    main()
