"""Batches on a Ray cluster whose nodes are processes of this machine: the same bytes as those of one process."""

import os
import sys
import tempfile
import threading
import time

import pytest

from bankml.cli import main
from tests.batch.cases import command, requests, write_input
from tests.batch.test_local import both
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_input(tmp_path_factory.mktemp("input") / "in.jsonl", requests(55))


@pytest.fixture(scope="module")
def whole(source, model, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "out.jsonl"
    assert main(command(source, output, "--parallel", 2, model=model.path)) == 2
    return output


@pytest.fixture
def nodes(monkeypatch, tmp_path):
    """A cluster: a head without CPUs, and a function that adds a node with one."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("BANKML_THREADS", "1")
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())  # a path short enough for sockets
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what was shipped to the nodes of another test is not found
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    memory = {"object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **memory})
    cluster.add = lambda: cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    yield cluster
    cluster.shutdown()


def ran(source, output, model, nodes, *options):
    return main(command(source, output, "--ray", nodes.address, "--parallel", 2, *options, model=model.path))


@pytest.mark.ray
def test_one_node(source, model, whole, nodes, tmp_path):
    nodes.add()
    output = tmp_path / "out.jsonl"
    assert ran(source, output, model, nodes) == 2
    assert both(output) == both(whole)
    assert ran(source, output, model, nodes) == 2, "nothing is left to compute"


@pytest.mark.ray
def test_three_nodes_one_of_which_is_killed(source, model, whole, nodes, tmp_path):
    victims = [nodes.add() for _ in range(3)]
    output = tmp_path / "out.jsonl"

    def kill():
        while not output.exists() or output.stat().st_size < 3000:
            time.sleep(0.001)
        nodes.remove_node(victims[1], allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    assert ran(source, output, model, nodes) == 2
    killer.join()
    assert both(output) == both(whole)


@pytest.mark.ray
def test_a_worker_whose_file_is_another_never_answers(source, model, whole, nodes, tmp_path, capfd):
    """The file that is shipped, or that the path leads to, is not the one that is pinned: each worker is refused."""
    nodes.add()
    folder = tmp_path / "other"
    folder.mkdir()
    other = tiny_model(folder, seed=2)
    output = tmp_path / "out.jsonl"
    for options in ((), ("--ray-ship",)):
        assert ran(source, output, other, nodes, "--fork", model.fork_path, *options) == 2
        printed = capfd.readouterr().err
        assert f"dropped: worker 1 on {os.uname().nodename} is refused: tiny.gguf sha256 {other.sha256}" in printed
        assert output.stat().st_size == 0
    assert ran(source, output, model, nodes, "--ray-ship") == 2
    assert both(output) == both(whole)


@pytest.mark.ray
def test_a_worker_that_is_killed_is_started_anew(source, model, whole, nodes, tmp_path, capfd):
    """The only one there is: what it was computing is computed by its successor, which verifies its file again."""
    import psutil

    raylet = nodes.add().all_processes["raylet"][0].process.pid
    output = tmp_path / "out.jsonl"

    def kill():
        while not output.exists() or output.stat().st_size < 3000:
            time.sleep(0.001)
        for process in psutil.Process(raylet).children(recursive=True):
            if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::ModelActor"):
                process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    assert ran(source, output, model, nodes) == 2
    killer.join()
    assert both(output) == both(whole)
    assert "waiting: worker 1 on " in capfd.readouterr().err


def test_without_ray_one_sentence_says_what_to_install(source, model, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(command(source, tmp_path / "x", "--ray", model=model.path)) == 1
    assert capfd.readouterr().err == "error: --ray needs the package ray: pip install 'bankml[ray]'\n"
    assert not (tmp_path / "x").exists()
