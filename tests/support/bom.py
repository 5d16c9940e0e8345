"""A bill of materials in CycloneDX from `cargo metadata` on standard input and the lock file's checksums."""

import json
import sys
import tomllib

with open(sys.argv[1], "rb") as lock:
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(lock)["package"]}
metadata = json.load(sys.stdin)
linked = {node["id"] for node in metadata["resolve"]["nodes"]}
components = []
for package in sorted(metadata["packages"], key=lambda p: (p["name"], p["version"])):
    if package["id"] not in linked or package["source"] is None:
        continue
    name, version = package["name"], package["version"]
    component = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
    if checksum := checksums.get((name, version)):
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    components.append(component)
print(
    json.dumps(
        {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}, indent=1
    )
)
