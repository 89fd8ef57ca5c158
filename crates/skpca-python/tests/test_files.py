"""What `save` does to the file system: modes, links and failures."""

import os
import resource
import signal
import stat
import threading

import numpy as np
import pytest
from skpca import SparseKernelPCA


@pytest.fixture(scope="module")
def fitted():
    x = np.random.default_rng(0).normal(size=(30, 3))
    return SparseKernelPCA(2, method="landmarks", n_support=6).fit(x)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def test_a_new_file_has_the_default_mode(fitted, tmp_path):
    for mask in (0o022, 0o027, 0o077):
        before = os.umask(mask)
        try:
            fitted.save(tmp_path / f"model-{mask:o}")
        finally:
            os.umask(before)
        assert mode(tmp_path / f"model-{mask:o}") == 0o666 & ~mask


def test_an_old_file_keeps_its_mode(fitted, tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    for kept in (0o644, 0o660, 0o600):
        path.chmod(kept)
        fitted.save(path)
        assert mode(path) == kept
    assert SparseKernelPCA.load(path).n_components_ == 2


def test_a_link_stays_and_its_target_is_replaced(fitted, tmp_path):
    (tmp_path / "inner").mkdir()
    link = tmp_path / "link"
    link.symlink_to("inner/model")
    for _ in range(2):
        fitted.save(link)
        assert link.is_symlink()
        assert not (tmp_path / "inner" / "model").is_symlink()
    assert names(tmp_path / "inner") == ["model"]
    assert SparseKernelPCA.load(link).n_components_ == 2


def test_a_read_only_file_is_refused(fitted, tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="model: the file is read-only"):
        fitted.save(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_a_directory_is_refused_and_nothing_is_left(fitted, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        fitted.save(tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        fitted.save(tmp_path / "none" / "model")
    assert names(tmp_path) == ["folder"]


def test_a_failure_halfway_leaves_the_old_file_alone(fitted, tmp_path):
    """A limit on the size of files stands for a full disk."""
    path = tmp_path / "model"
    path.write_text("old")
    bytes_allowed = 64
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, before[1]))
    try:
        with pytest.raises(OSError, match="model: File too large"):
            fitted.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_every_spelling_of_a_path(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", str(tmp_path / "text"), tmp_path / "path"):
        fitted.save(path)
    assert names(tmp_path) == ["path", "plain", "text"]


def test_a_pipe_is_written_directly(fitted, tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    fitted.save(pipe)
    reader.join()
    assert received == [fitted._model.to_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
