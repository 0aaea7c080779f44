"""Invalid input of every command: exit code 2, one message, and nothing is written.

The functions of the library own most messages. A case here shows that the command calls the check, and names options.
"""

import shlex

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")
pytest.importorskip("zarr")

import zarr

from support import zoo

SEARCH = "fit rows.zarr --search-rows 200"
USED = "this command already reads or writes this file"
JSON = "standard output: --json already writes to it; choose a file for other output"

ERRORS = [
    # fit: the table
    ("fit none.csv", "none.csv: there is no such file"),
    ("fit table.xyz", "unknown extension; pass --format, one of csv"),
    ("fit numbers.csv", "line 2, column 'b': 7 is neither 0 nor 1; for counts, pass --binarize 0 to read"),
    ("fit header.csv", "header.csv: the table has no rows"),
    ("fit model.npz", "model"),
    ("fit customers.csv", "--categories"),
    ("fit table.csv --tile big", "--tile is 'big'; pass height x width"),
    ("fit table.csv --tile 0x4", "--tile is '0x4'; pass height x width, such as 16x16"),
    ("fit table.csv --tile 4x4", "an image of 4 x 4 has 16 pixels"),
    ("fit table.csv --algebra prefer-or", "--algebra prefer-or is now the default, --algebra auto; omit it"),
    # fit: parameters
    ("fit table.csv -k -3", "--atoms must be at least 1, not -3"),
    ("fit table.csv -k many", "--atoms is 'many'; pass an integer or mdl"),
    ("fit table.csv --fixed patterns.json", "patterns.json: patterns are read as .csv or .xlsx"),
    ("fit table.csv --fixed quotes.csv", "quotes.csv: line 2, column 'features': quotes do not match"),
    # commands and options
    ("reproduce", "no such command: 'reproduce'; in a clone of the repository, 'make paper'"),
    ("pack table.csv", "Missing option '--output' / '-o'"),
    ("pack table.csv new.zarr", "Missing option '--output' / '-o'"),
    # fit: outputs
    ("fit table.csv -o nowhere/model.npz", "nowhere/model.npz: there is no folder 'nowhere'"),
    ("fit table.csv -o new.csv", "new.csv: a model is an .npz file; use the extension .npz"),
    ("fit table.csv -o table.csv", f"table.csv: {USED}"),
    ("fit table.csv -o rows", "rows: there is a folder of this name; choose another name"),
    ("fit table.csv --patterns p.txt", "p.txt: patterns are written as .csv, .tsv, .json"),
    ("fit table.csv --codes codes.xls", "codes.xls: unknown extension"),
    ("fit table.csv --report r.txt", "r.txt: a report is an HTML page; use the extension .html"),
    ("fit table.csv --codes - --report -", USED),
    ("fit table.csv --checkpoint no/where", "no/where: there is no folder 'no'; create it first"),
    ("fit table.csv --checkpoint table.csv", f"table.csv: {USED}"),
    ("fit table.csv --checkpoint numbers.csv", "numbers.csv: this is a file, but a checkpoint is a folder"),
    ("fit table.csv --checkpoint others.zarr", "others.zarr: this is a Zarr store; a checkpoint needs a folder"),
    ("fit table.csv --checkpoint -", "a checkpoint cannot be written to a stream"),
    ("fit table.csv --resume", "--resume requires --checkpoint, the folder to resume from"),
    # fit: weights
    ("fit weights.csv --weight-column n", "there is no column 'n'"),
    ("fit none.csv --weight-column n", "none.csv: there is no such file"),
    ("fit rows.zarr --weight-column n", "rows.zarr: --weight-column n does not apply to packed stores"),
    ("fit rows.npy --weight-column n", "--weight-column n applies to csv, tsv, xlsx, parquet, feather, not to 'npy'"),
    ("fit weights.csv --weight-column count --transpose", "--weight-column count cannot be combined with --transpose"),
    # fit: stores
    (f"{SEARCH} --max-memory 1kB", "--max-memory 1000 is too small for a search of 200 rows"),
    (f"{SEARCH} --checkpoint rows.zarr", f"rows.zarr: {USED}"),
    (f"{SEARCH} --codes rows.zarr", f"rows.zarr: {USED}"),
    ("fit rows.zarr --search-rows few", "--search-rows is 'few'; pass an integer, all or auto"),
    ("fit rows.zarr --search paper", "--search paper needs all rows in memory"),
    ("fit rows.zarr --transpose", "can be transposed only by bitatoms pack; omit --transpose"),
    ("fit rows.zarr --without 'item 1'", "can be left out only by bitatoms pack; omit --without"),
    ("fit rows.zarr --binarize 3", "a packed store contains only 0 and 1; omit --binarize"),
    ("fit rows.zarr --header", "rows.zarr: --header applies to csv, tsv, xlsx, pairs, baskets, not to 'zarr'; omit it"),
    ("fit rows.zarr --tile 4x4", "an image of 4 x 4 has 16 pixels"),
    ("fit others.zarr", "others.zarr: the array has shape (3, 3, 3)"),
    ("fit damaged.zarr -o m.npz", "damaged.zarr: its array 'bits' is corrupt"),
    # pack and convert
    ("pack table.csv -o rows.npz", "rows.npz: a packed store is a folder; use the extension"),
    ("pack table.csv -o -", "standard output: a store cannot be written to a stream"),
    ("pack rows.zarr -o rows.zarr", f"rows.zarr: {USED}"),
    ("pack numbers.csv -o x.zarr", "numbers.csv: line 2, column 'b': 7 is"),
    ("pack table.csv -o x.zarr --max-memory 1kB", "--max-memory 1000 is too small to pack a table; pass at least 50"),
    ("pack table.csv -o x.zarr --tile 5x8", "pass --tile to bitatoms fit instead"),
    ("convert - x.csv --format zarr", "cannot be read from a stream; pass a file"),
    ("convert table.csv - --to bed", "PLINK genotypes cannot be written to a"),
    ("convert table.csv - --json", JSON),
    # models
    ("show table.csv", "table.csv: not a model"),
    ("show -", "standard input: a model cannot be read from a stream; pass a file"),
    ("show rows.zarr --patterns p.md", "rows.zarr: this is a packed store, not a model; this command writes one: bita"),
    ("show model.npz --patterns - --json", JSON),
    ("transform model.npz table.csv --max-memory 1kB", "--max-memory 1000 is too small for"),
    ("transform model.npz rows.zarr -o c.zarr --max-memory 1kB", "1000 is too small"),
    ("transform model.npz table.csv -o - --to zarr", "a Zarr store cannot be written to"),
    ("transform model.npz table.csv -o table.csv", f"table.csv: {USED}"),
    ("transform model.npz table.csv --json", JSON),
    ("transform model.npz table.csv --soft --json", JSON),
    ("transform model.npz table.csv --soft -o s.npz", "soft codes are numbers, which are written as .csv, .tsv, .x"),
    ("reconstruct model.npz", "pass either a table or --codes"),
    ("reconstruct model.npz table.csv --codes table.csv", "pass either a table or --codes"),
    ("reconstruct model.npz --codes numbers.csv --binarize 0", "the codes have 2 columns, but the model has 5 atoms"),
    ("reconstruct model.npz --codes holes.csv", "holes.csv: 1 value is missing, at line 3, column 'atom1'"),
    ("reconstruct model.npz table.csv -o model.npz", f"model.npz: {USED}"),
    ("reconstruct model.npz table.csv --json", JSON),
    ("complete model.npz table.csv --decode -o x.csv", "model.npz: the model was not learned from a table of"),
    ("complete categories.npz customers.csv --decode -o x.npz", "written as .csv, .tsv or .xlsx"),
    ("complete categories.npz customers.csv --decode --only-missing", "omit --only-missing"),
    (
        "complete model.npz table.csv --only-missing -o l.npz",
        "l.npz: lists of missing values are written as .csv, .tsv",
    ),
    ("complete model.npz table.csv -o table.csv", f"table.csv: {USED}"),
    ("complete model.npz table.csv --json", JSON),
    ("crossvalidate table.csv --atoms 2,few", "--atoms is 'few'; pass an integer or mdl"),
    ("crossvalidate header.csv", "header.csv: the table has no rows"),
    ("stability table.csv model.npz -k 3", "a model has its own --atoms, --algebra and --search"),
    ("stability header.csv", "header.csv: the table has no rows"),
    ("stability table.csv -o table.csv", f"table.csv: {USED}"),
    ("stability table.csv -o model.csv", "a model is an .npz file"),
    (
        "rules model.npz -o rules.txt",
        "rules.txt: rules are written as .csv, .tsv, .json, .md, .html or .xlsx; use one of",
    ),
    ("rules model.npz -o model.npz", f"model.npz: {USED}"),
    ("rules model.npz -o - --json", JSON),
    ("recommend model.npz table.csv -o x.npz", "x.npz: recommendations are written as .csv, .tsv"),
    ("score model.npz table.csv -o x.npz", "x.npz: scores are written as .csv, .tsv"),
    ("report model.npz table.csv -o r.txt", "r.txt: a report is an HTML page; use the extension .html"),
    ("report model.npz table.csv -o table.csv", f"table.csv: {USED}"),
    ("report model.npz table.csv -o - --json", JSON),
    # pictures
    ("denoise picture.pbm -o picture.pbm", f"picture.pbm: {USED}"),
    ("denoise picture.pbm -o made.jpg", "made.jpg: unknown extension"),
    ("denoise picture.pbm -o made.pbm --blocks 8x8", "the picture is divided into blocks by itself; omit --blocks"),
    ("denoise picture.pbm -o made.pbm --block-sizes '6;8'", "pass integers separated by commas"),
    ("denoise picture.pbm -o - --json", JSON),
    ("denoise holes.npy -o made.pbm", "holes.npy: 2 pixels are unknown; fill the holes first with bitatoms inpaint"),
    ("inpaint picture.pbm --mask table.csv -o x.pbm", "the mask has 300 x 40 pixels, but picture.pbm has 8 x 8"),
    ("inpaint picture.pbm --mask holes.npy -o x.pbm", "holes.npy: 2 pixels are unknown; write 1 where the picture has"),
    ("inpaint picture.pbm --mask table.csv -o table.csv", f"table.csv: {USED}"),
    # roles
    ("roles header.csv", "the table has no rows"),
    ("roles users.csv --weights 1,x,1", "--weights is '1,x,1'; pass three numbers separated by commas"),
    ("roles users.csv --direct d.csv", "d.csv: without --direct-weight no permission is granted directly"),
    ("roles users.csv -o users.csv", f"users.csv: {USED}"),
    ("roles users.csv --fixed roles.csv -o roles.csv", f"roles.csv: {USED}"),
    ("roles users.csv -o - --json", JSON),
    ("roles users.csv -o roles.unknown", "roles.unknown"),
    ("roles users.csv --report page.txt", "page.txt: a report is an HTML page"),
    ("roles users.csv --apart '\"mail,wiki'", "is not a list of names separated by commas: unexpected end of data"),
    ("roles users.csv --min-share 0.8", "--min-share requires --report"),
    ("roles users.csv --min-peers 3", "--min-peers requires --report"),
    ("roles users.csv --fixed absent.csv", "absent.csv: there is no such file"),
    ("roles users.csv --roles other.csv", "the roles have no column of the users: they have 'fly', and the users '"),
    ("roles users.csv --roles roles.csv --fixed roles.csv", "--fixed is for a search, but --roles roles.csv gives"),
    ("roles users.csv --roles roles.csv --seed 3", "--seed is for a search, but --roles roles.csv gives the roles"),
    ("roles users.csv --roles roles.csv -o x.csv", "x.csv: --roles roles.csv already gives the roles; omit --output"),
    ("roles users.csv --roles roles.csv --direct roles.csv", f"roles.csv: {USED}"),
    ("roles-diff roles.csv absent.csv", "absent.csv: there is no such file"),
    ("roles-diff roles.csv twice.csv", "twice.csv: two roles have the name 'a'; rename one of them"),
    ("roles-diff roles.csv roles.csv --min-share 0.8", "--min-share requires --report"),
    ("roles-diff roles.csv roles.csv --report x.html", "x.html: the report is about users and their roles; pass --us"),
    ("roles-diff roles.csv roles.csv --users users.csv --report users.csv", f"users.csv: {USED}"),
    ("roles-diff roles.csv roles.csv --users users.csv --report x.txt", "x.txt: a report is an HTML page"),
    # others
    ("warmup --jobs 0", "--jobs must not be 0"),
    ("compare", "no data to compare; pass a file, or one of digits, halftone"),
    ("compare planted", "planted: there is no such file or bundled data set; choose from digits"),
    ("compare digits -k 1", "digits"),  # a file of that name comes first
    ("compare table.csv table.csv", "table.csv: passed twice"),
    ("compare table.csv -k 2,x", "--atoms is '2,x'; pass positive integers separated by commas"),
    ("compare table.csv -o table.csv/below", "table.csv is a file, but a comparison is written to a folder"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with the files that the commands name; no command may change it."""
    folder = tmp_path_factory.mktemp("errors")
    for name, files in {
        "categories": {"model.npz": "categories.npz", "table.csv": "customers.csv"},
        "weights": {"table.csv": "weights.csv"},
        "roles": {"table.csv": "users.csv"},
        "or": {},
    }.items():
        table = zoo.put(name, folder).table
        for old, new in files.items():
            (folder / old).replace(folder / new)
    (folder / "rows").mkdir()
    texts = {
        "numbers.csv": "a,b\n1,7\n3,0\n", "header.csv": "a,b\n", "digits": "text",
        "other.csv": ",fly\npilot,1\n", "patterns.json": "[]",
        "twice.csv": ",read,pay\na,1,0\na,0,1\n", "holes.csv": "atom1\n1\nNA\n0\n",
        "quotes.csv": 'atom,features\n1,"""item 1; item 2"\n',
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    ba.write(np.eye(8, dtype=np.uint8), folder / "picture.pbm")
    np.save(folder / "rows.npy", np.eye(8))
    np.save(folder / "holes.npy", np.where(np.arange(64).reshape(8, 8) % 50, 1.0, np.nan))
    zarr.save_array(folder / "others.zarr", np.zeros((3, 3, 3)))
    for name in ("rows.zarr", "damaged.zarr"):
        ba.pack(table, folder / name)
    chunk = next(path for path in (folder / "damaged.zarr/bits/c").rglob("*") if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 0xFF
    chunk.write_bytes(content)
    return folder


@pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning")  # the command line prints them
@pytest.mark.parametrize(("command", "part"), ERRORS, ids=[command for command, _ in ERRORS])
def test_invalid_input_is_reported_in_one_line_and_nothing_is_written(bitatoms, folder, monkeypatch, command, part):
    if command.startswith("compare"):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    code, stdout, stderr = bitatoms(*shlex.split(command))
    assert code == 2
    assert part in " ".join(stderr.replace("│", " ").split())
    assert "Traceback" not in stderr + stdout
    assert sorted(folder.rglob("*")) == before
