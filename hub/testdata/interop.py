"""The other side of interop_test.go: huggingface_hub and hf_xet, driven by a verb and paths. Prints JSON."""

import json
import sys
import time

verb, args = sys.argv[1], sys.argv[2:]

if verb == "versions":
    import importlib.metadata

    import hf_xet  # noqa: F401

    print(json.dumps([importlib.metadata.version(p) for p in ("huggingface_hub", "hf_xet")]))
elif verb == "download":  # repo, patterns…
    from huggingface_hub import snapshot_download

    print(json.dumps(snapshot_download(args[0], allow_patterns=args[1:] or None)))
elif verb == "cached":  # repo, patterns…: from the cache alone
    from huggingface_hub import snapshot_download

    print(json.dumps(snapshot_download(args[0], allow_patterns=args[1:] or None, local_files_only=True)))
elif verb == "scan":
    from huggingface_hub import scan_cache_dir

    info = scan_cache_dir()
    print(json.dumps({
        "size": info.size_on_disk,
        "warnings": [str(w) for w in info.warnings],
        "incomplete": [str(f.file_path) for f in info.incomplete_files],
        "repos": {r.repo_id: {"files": r.nb_files, "size": r.size_on_disk, "refs": sorted(r.refs)} for r in info.repos},
    }))
elif verb == "delete":  # repo: as `hf cache rm` does
    from huggingface_hub import scan_cache_dir

    info = scan_cache_dir()
    commits = [v.commit_hash for r in info.repos if r.repo_id == args[0] for v in r.revisions]
    strategy = info.delete_revisions(*commits)
    strategy.execute()
    print(json.dumps(strategy.expected_freed_size))
elif verb == "upload":  # endpoint, files…
    import hf_xet

    token = ("xet_upload", int(time.time()) + 3600)
    infos = hf_xet.upload_files(args[1:], args[0], token, None, None, "model")
    print(json.dumps([i.hash for i in infos]))
elif verb == "hash":  # files…
    import hf_xet

    print(json.dumps([i.hash for i in hf_xet.hash_files(args)]))
else:
    sys.exit("unknown verb " + verb)
