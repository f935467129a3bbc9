"""The files of examples/batch: they are valid, and what they run can be parsed."""

import re
import shlex
from pathlib import Path

import pytest

from bankml.batch.reading import lines_of
from bankml.batch.request import BatchRequest, read_line
from bankml.cli.parser import build_parser

yaml = pytest.importorskip("yaml")
EXAMPLES = Path(__file__).parents[2] / "examples" / "batch"


def parsed(command):
    """The options of a `bankml …` command."""
    name, *words = shlex.split(command)
    assert name == "bankml"
    return build_parser().parse_args(words)


def test_the_job_of_kuberay():
    job = yaml.safe_load((EXAMPLES / "kuberay-job.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    options = parsed(job["spec"]["entrypoint"])
    assert options.ray == "auto" and options.output
    cluster = job["spec"]["rayClusterSpec"]
    head, (workers,) = cluster["headGroupSpec"], cluster["workerGroupSpecs"]
    assert head["rayStartParams"]["num-cpus"] == "0", "the head computes nothing"
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    for group, paths in ((head, [options.model, options.input, options.output]), (workers, [options.model])):
        spec = group["template"]["spec"]
        volumes = {one["name"] for one in spec["volumes"]}
        for container in spec["containers"]:
            assert {"name", "image", "resources", "volumeMounts"} <= container.keys()
            mounts = container["volumeMounts"]
            assert {one["name"] for one in mounts} == volumes
            assert all(any(path.startswith(one["mountPath"] + "/") for one in mounts) for path in paths)


def test_the_cluster_of_ray_up():
    text = (EXAMPLES / "ray-cluster.yaml").read_text()
    cluster = yaml.safe_load(text)
    known = ["cluster_name", "provider", "auth", "min_workers", "max_workers", "file_mounts", "setup_commands"]
    assert cluster.keys() == {*known, "head_start_ray_commands", "worker_start_ray_commands"}
    assert cluster["provider"]["type"] == "local" and len(cluster["provider"]["worker_ips"]) == cluster["max_workers"]
    (command,) = re.findall(r"^#   (bankml .*)$", text, re.M)
    assert parsed(command).ray == "auto"


def test_the_requests():
    found = [read_line(line) for line in lines_of(str(EXAMPLES / "requests.jsonl"))]
    assert len(found) == 3 and all(isinstance(one, BatchRequest) for one in found)
