"""The script of a report, run by node without a document, and the data that a page contains for it."""

import base64
import json
import os
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from bitatoms.bits import BitMatrix

WITHOUT_DOCUMENT = ("numbers", "bits", "data", "coder", "parse", "csv")
_TIMEOUT = 120  # seconds


def run_script(program, value):
    """Return what a program in JavaScript prints as JSON, given a value as ``input``; skip without node."""
    node = shutil.which(os.environ.get("NODE") or "node")
    if node is None:
        pytest.skip("node is not installed, which runs the script of the report; install it, or set NODE to its path")
    folder = files("bitatoms.report").joinpath("js")
    functions = "".join(folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in WITHOUT_DOCUMENT)
    source = (
        f'"use strict";\n{functions}\nconst input = JSON.parse(require("fs").readFileSync(0, "utf-8"));\n'
        f"process.stdout.write(JSON.stringify((() => {{ {program} }})()));\n"
    )
    text = {"input": json.dumps(value), "encoding": "utf-8"}
    done = subprocess.run([node, "-e", source], capture_output=True, timeout=_TIMEOUT, **text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def data_of(html):
    """Return the data that a page contains for its script."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


def numbers_of(text):
    """Return the integers that a page contains, by the definition of their bytes."""
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    return numbers


def bits_of(text, n_rows, n_cols):
    """Return bits that a page contains."""
    return BitMatrix.from_bytes(base64.b64decode(text), n_rows, n_cols).to_dense()
