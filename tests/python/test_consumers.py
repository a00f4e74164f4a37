"""Code of the standard library that takes file objects works on those of a mount."""

import configparser
import csv
import gzip
import hashlib
import json
import lzma
import os
import pickle
import shutil
import sqlite3
import tarfile
import zipfile

import pytest

import directfuse


@pytest.fixture
def make(root):
    """make(name, mode): opens a file of the mount."""
    return lambda name, mode="rb", **options: directfuse.open(f"{root}/{name}", mode, **options)


@pytest.fixture
def data():
    return os.urandom(100_000) + bytes(100_000)


def test_zipfile(make, data):
    with make("a.zip", "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", data)
        archive.writestr("two", b"2")
    with make("a.zip", "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.writestr("three", b"3")
    with make("a.zip") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["one", "two", "three"] and archive.read("one") == data


def test_tarfile(make, data, tmp_path):
    (tmp_path / "member").write_bytes(data)
    with make("a.tar.gz", "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.add(tmp_path / "member", "member")
    with make("a.tar.gz") as file, tarfile.open(fileobj=file) as archive:
        assert archive.extractfile("member").read() == data


@pytest.mark.parametrize("compression", [gzip, lzma])
def test_compression(make, data, compression):
    with make("compressed", "wb") as file, compression.open(file, "wb") as packed:
        packed.write(data)
    with make("compressed") as file, compression.open(file) as packed:
        assert packed.read() == data


def test_csv(make):
    rows = [["a", "b,c"], ["ä\n", "d"]]
    with make("t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    with make("t.csv", "r", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == rows


def test_json_pickle_configparser(make):
    value = {"a": [1, 2.5, None], "ö": "x"}
    with make("v.json", "w") as file:
        json.dump(value, file)
    with make("v.json", "r") as file:
        assert json.load(file) == value
    with make("v.pickle", "wb") as file:
        pickle.dump(value, file)
    with make("v.pickle") as file:
        assert pickle.load(file) == value
    with make("v.ini", "w") as file:
        file.write("[s]\nk = 1\n")
    parser = configparser.ConfigParser()
    with make("v.ini", "r") as file:
        parser.read_file(file)
    assert parser["s"]["k"] == "1"


def test_copyfileobj_and_hashes(make, data, tmp_path):
    real = tmp_path / "real"
    real.write_bytes(data)
    with open(real, "rb") as source, make("copy", "wb") as target:
        shutil.copyfileobj(source, target)
    with make("copy") as file:
        assert hashlib.file_digest(file, "sha256").digest() == hashlib.sha256(data).digest()
    with make("copy") as source, open(tmp_path / "back", "wb") as target:
        shutil.copyfileobj(source, target)
    assert (tmp_path / "back").read_bytes() == data


def test_a_database_image(make):
    """sqlite3 wants real files; an image of one goes through."""
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t as select 1 as a")
        image = database.serialize()
    with make("db", "wb") as file:
        file.write(image)
    with make("db") as file, sqlite3.connect(":memory:") as database:
        database.deserialize(file.read())
        assert database.execute("select a from t").fetchall() == [(1,)]


def test_numpy(make):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    with make("a.npy", "wb") as file:
        numpy.save(file, numpy.arange(1000))
    with make("a.npy") as file:
        assert (numpy.load(file) == numpy.arange(1000)).all()
