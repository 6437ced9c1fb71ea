"""Functions of libraries that have a faster form: the table of the rules in ``rules/faster_forms.py``.

A row names what the source calls and what samples show of it, and the form to write instead. To add one: a row here,
one in the table of docs/how-to/suggestions.md, and a case in tests/unit/report/test_suggestions_of_libraries.py.
"""

from __future__ import annotations

from dataclasses import dataclass

PAIRS, ELEMENTS, AGAIN, SLOWER = "call-for-each-pair", "call-for-each-element", "made-again", "slower-form"

ALWAYS, SAFE_LOADER, OF_FILE = "always", "no loader, or the safe one", "the text was read from a file"
NO_SIZE, NO_FORMAT, REPEATED = "no size, or a small one", "no format, or a mixed one", "it is called many times"
PATTERN, INSERTS = "a separator with blanks around it, or the engine in Python", "the statement inserts"
ONE_FORM, LEVEL = (
    "it is called many times, and looks for nothing else",
    "most is compressing a PNG, at no level of the program's own",
)
OPENPYXL, NO_LEVEL, OF_ASDICT = "no engine, or openpyxl", "no level", "of asdict() of an object"
SAME_TABLE = "each round takes rows of one table, and the other one stays the same"
OWN_MAKER = "the function that calls the method makes the object, too, and runs many times"
"""What the source has to show for a row of ``SLOWER``."""


@dataclass(frozen=True, slots=True)
class Form:
    """A function of a library and its faster form; the rule says where it applies.

    ``{call}``, ``{first}`` and ``{second}`` in the texts are the function and its first two arguments as written;
    ``{round}`` and ``{before}`` of a row of ``AGAIN`` say how often it is made, and where to make it instead.
    """

    rule: str
    """``PAIRS``: called for each of a first one with each of a second one, in two loops. ``ELEMENTS``: in a loop that
    counts or goes through a range. ``AGAIN``: in a loop or a function that is called many times, with arguments that
    are the same each time. ``SLOWER``: anywhere."""
    package: str
    """The package that the function is imported from; empty for a method, whatever has it."""
    names: tuple[str, ...]
    """The last parts of the names of functions, or the names of methods."""
    where: str
    """The file or the folder of the Python function, or of the native library, that the samples are in."""
    text: str
    instead: str
    same: tuple[int, ...] = ()
    """Places of the arguments that have to be the same in all rounds of the inner loop."""
    functions: tuple[str, ...] = ()
    """The functions that the samples show, if their names are others than ``names``."""
    when: str = ALWAYS
    """Of a row of ``SLOWER``: what else the source has to show."""


FORMS: tuple[Form, ...] = (
    Form(
        PAIRS,
        "networkx",
        ("dijkstra_path_length", "dijkstra_path"),
        "/networkx/algorithms/shortest_paths/",
        "{call} searches the graph from {first} anew for each target.",
        "lengths = nx.single_source_{call}(graph, {first}) once before the inner loop (cutoff= bounds how far), and"
        " lengths[target] in it",
        same=(0, 1),
    ),
    Form(
        PAIRS,
        "",
        ("contains", "covers", "intersects", "within", "covered_by", "touches", "overlaps", "crosses"),
        "/shapely/geometry/base.py",
        "Each shape is compared with each other one, in a call of Python for each pair.",
        "tree = shapely.STRtree(shapes) once, and tree.query(others, predicate=...), which compares only what is near",
    ),
    Form(
        PAIRS,
        "rapidfuzz",
        (
            "ratio",
            "partial_ratio",
            "token_sort_ratio",
            "token_set_ratio",
            "WRatio",
            "QRatio",
            "distance",
            "similarity",
            "normalized_distance",
            "normalized_similarity",
        ),
        "/rapidfuzz/",
        "Each text is compared with each other one, in a call of Python for each pair.",
        "rapidfuzz.process.cdist(texts, texts, scorer=..., score_cutoff=...): all pairs in one call, with workers=-1 on"
        " all CPUs; process.extractOne() for the best only",
    ),
    Form(
        PAIRS,
        "scipy",
        ("euclidean", "cosine", "cityblock", "sqeuclidean", "chebyshev", "correlation", "minkowski", "jaccard"),
        "/scipy/spatial/distance.py",
        "{call}() of one pair takes longer to check its arguments than to calculate.",
        'scipy.spatial.distance.cdist(left, right, "{call}"): all pairs in one call',
    ),
    Form(
        ELEMENTS,
        "",
        ("getpixel", "putpixel"),
        "/PIL/Image.py",
        "{call}() is called for each pixel.",
        "numpy.asarray(image), and expressions with whole arrays; Image.point() for a function of one value",
    ),
    Form(
        AGAIN,
        "openpyxl",
        ("Font", "PatternFill", "Border", "Side", "Alignment", "GradientFill", "Protection"),
        "/openpyxl/",
        "The same {call} is made and looked up for each cell.",
        "make it {before}, and give the same object to each cell",
        functions=("__init__", "__set__", "__hash__", "__iter__"),
    ),
    Form(
        AGAIN,
        "jinja2",
        ("Template", "from_string", "get_template"),
        "/jinja2/",
        "The same template is made anew in each {round}.",
        "make it {before}, and call its render() here",
        functions=("compile", "__new__", "from_string"),
    ),
    Form(
        SLOWER,
        "",
        ("get_template",),
        "/jinja2/",
        "The Environment is made in this function: what it compiled is lost with it, each time.",
        "make the Environment once, at the level of the module: it keeps its compiled templates",
        functions=("get_template", "_load_template"),
        when=OWN_MAKER,
    ),
    Form(
        AGAIN,
        "jsonschema",
        ("validate",),
        "/jsonschema/",
        "validate() checks the schema itself anew each time, which takes longer than to check the document.",
        "validator = jsonschema.validators.validator_for(schema)(schema) {before}, and"
        " validator.validate(document) here",
        same=(1,),
        functions=("check_schema",),
    ),
    Form(
        AGAIN,
        "lark",
        ("Lark",),
        "/lark/",
        "The same grammar is compiled anew in each {round}.",
        "make the parser {before}",
        functions=("__init__",),
    ),
    Form(
        AGAIN,
        "pydantic",
        ("TypeAdapter",),
        "/pydantic/type_adapter.py",
        "TypeAdapter() makes the validators of the type anew in each {round}, which takes longer than to use them.",
        "make it {before}, and call its methods here",
        functions=("__init__",),
    ),
    Form(
        SLOWER,
        "yaml",
        ("safe_load", "safe_load_all", "load", "load_all"),
        "/yaml/",
        "The document is read by the parser that is written in Python.",
        "yaml.load(text, Loader=yaml.CSafeLoader), which reads the same in C where PyYAML was built with libyaml",
        functions=("get_single_data", "get_data", "check_data", "get_single_node"),
        when=SAFE_LOADER,
    ),
    Form(
        SLOWER,
        "yaml",
        ("dump", "safe_dump", "dump_all", "safe_dump_all"),
        "/yaml/",
        "The document is written by the emitter that is written in Python.",
        "yaml.dump(data, Dumper=yaml.CSafeDumper), which writes the same in C where PyYAML was built with libyaml",
        functions=("represent", "serialize"),
        when=SAFE_LOADER,
    ),
    Form(
        SLOWER,
        "pygments",
        ("guess_lexer",),
        "/pygments/",
        "guess_lexer() loads every lexer and asks each whether the text is its own.",
        "get_lexer_for_filename({path}), or get_lexer_by_name() where the language is known",
        functions=("guess_lexer",),
        when=OF_FILE,
    ),
    Form(
        SLOWER,
        "",
        ("iter_content",),
        "/requests/models.py",
        "iter_content() gives {pieces} at a time: each passes through requests, urllib3 and this loop.",
        "iter_content(65536), or .content where all of it fits into memory",
        functions=("generate",),
        when=NO_SIZE,
    ),
    Form(
        SLOWER,
        "",
        ("cell",),
        "/openpyxl/worksheet/_read_only.py",
        "In a read-only worksheet each call of cell() reads the sheet from its start.",
        "for row in sheet.iter_rows(values_only=True): all cells in one pass; or a workbook without read_only=True",
        functions=("_get_cell",),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "httpx",
        ("get", "post", "put", "patch", "delete", "head", "options"),
        "/httpx/_api.py",
        "httpx.{call}() makes a client, its certificates and a connection for this one request.",
        "client = httpx.Client() once, and client.{call}() here: it keeps connections to a server open",
        functions=("request",),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "requests",
        ("get", "post", "put", "patch", "delete", "head", "options"),
        "/requests/api.py",
        "requests.{call}() makes a session, its adapters and a connection for this one request.",
        "session = requests.Session() once, and session.{call}() here: it keeps connections to a server open",
        functions=("request",),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "pandas",
        ("to_datetime",),
        "/dateutil/parser/",
        "Each text is taken apart by itself, in Python: its form is not given.",
        'to_datetime(..., format="%d.%m.%Y %H:%M"), with the form that the texts have, if all have one: read in C',
        functions=("parse", "_parse"),
        when=NO_FORMAT,
    ),
    Form(
        SLOWER,
        "pandas",
        ("read_csv", "read_table"),
        "/pandas/io/parsers/python_parser.py",
        "{call}() takes the file apart in Python: its separator is a pattern, or its engine is the one in Python.",
        "one character as sep=, with skipinitialspace=True where blanks follow it and str.strip() of names and texts"
        " where blanks stand before it, and no engine=: read in C",
        functions=("read",),
        when=PATTERN,
    ),
    Form(
        SLOWER,
        "pandas",
        ("read_excel",),
        "/pandas/io/excel/",
        "openpyxl reads each cell in Python.",
        'read_excel(..., engine="calamine"), with the package python-calamine: read in native code',
        functions=("get_sheet_data",),
        when=OPENPYXL,
    ),
    Form(
        SLOWER,
        "",
        ("merge",),
        "/pandas/core/",
        "Each round of the loop merges its rows with {first} anew, all of whose keys are read each time.",
        "merge() of all rows once, before the loop, and groupby() for its parts",
        functions=("merge",),
        when=SAME_TABLE,
    ),
    Form(
        SLOWER,
        "gzip",
        ("compress",),
        "/gzip.py",
        "Without a level compress() takes 9, which is the slowest.",
        "compresslevel=6, which makes almost the same size; 1 is faster still",
        functions=("compress",),
        when=NO_LEVEL,
    ),
    Form(
        SLOWER,
        "",
        ("append",),
        "/numba/typed/typedlist.py",
        "append() to a typed List in Python enters compiled code for each value.",
        "a list of Python, and numpy.array(values) once for the compiled function; or fill the List in a function with"
        " @njit",
        functions=("append",),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "",
        ("executemany",),
        "duckdb",
        "DuckDB executes the statement once for each row, and each time it is a query of its own.",
        "all rows at once: table = pandas.DataFrame(rows, columns=...) or a table of polars or pyarrow, and execute"
        '("INSERT INTO ... SELECT * FROM table"); or read_csv() of the file that they come from',
        when=INSERTS,
    ),
    Form(
        SLOWER,
        "copy",
        ("deepcopy",),
        "/copy.py",
        "deepcopy() goes through all parts of the object in Python, each time.",
        "copy what changes and share the rest: copy.copy(), a slice of a list, dict(...), or a method of the class that"
        " copies its own parts",
        functions=("deepcopy",),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "orjson",
        ("dumps",),
        "/dataclasses.py",
        "asdict() copies all parts of the object in Python, and orjson can write the object itself.",
        "orjson.dumps() of the object, without asdict()",
        functions=("asdict", "_asdict_inner"),
        when=OF_ASDICT,
    ),
    Form(
        SLOWER,
        "dataclasses",
        ("asdict", "astuple"),
        "/dataclasses.py",
        "{call}() copies all parts of the object in Python, those inside of others too.",
        "write the fields out that are needed here: {{'name': each.name, ...}}",
        functions=("asdict", "_asdict_inner", "astuple", "_astuple_inner"),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "inspect",
        ("stack", "getouterframes"),
        "/inspect.py",
        "{call}() looks for the source text of each caller.",
        "inspect.currentframe().f_back and its f_code.co_name, which read no file",
        functions=("stack", "getouterframes"),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "json",
        ("dumps",),
        "/json/encoder.py",
        "With indent= the document is encoded in Python.",
        "json.dumps() without indent=, which encodes in C; orjson.dumps() can indent in native code",
        functions=("_iterencode", "_iterencode_dict", "_iterencode_list"),
    ),
    Form(
        SLOWER,
        "json",
        ("dump",),
        "/json/encoder.py",
        "dump() encodes the document in Python, piece by piece.",
        "file.write(json.dumps(document)), without indent=, which encodes all of it in C",
        functions=("_iterencode", "_iterencode_dict", "_iterencode_list"),
    ),
    Form(
        SLOWER,
        "statistics",
        ("mean", "variance", "stdev", "pvariance", "pstdev"),
        "/statistics.py",
        "{call}() adds exact fractions in Python.",
        "statistics.fmean() for a mean; numpy.std(values, ddof=1) and the like for the others: in floating point, in C",
        functions=("mean", "variance", "stdev", "pvariance", "pstdev"),
    ),
    Form(
        SLOWER,
        "xml",
        ("parse", "parseString"),
        "/xml/dom/",
        "minidom makes an object of Python for each node and attribute.",
        "xml.etree.ElementTree, which builds its tree in C",
        functions=("parse", "parseString"),
    ),
    Form(
        SLOWER,
        "datetime",
        ("strptime",),
        "/_strptime.py",
        "strptime() goes through its format in Python, for each text.",
        "functools.lru_cache on a function that reads one text, where the same texts come again; or"
        " pandas.to_datetime(texts, format=...) for all at once",
        functions=("_strptime_datetime", "_strptime_datetime_datetime"),
        when=REPEATED,
    ),
    Form(
        SLOWER,
        "dateutil",
        ("parse",),
        "/dateutil/parser/",
        "parse() finds out in Python how each text is written.",
        "datetime.fromisoformat(text) for texts such as 2026-11-29 12:45:00, in C; for others datetime.strptime(text,"
        " format), if all are written in one way",
        when=ONE_FORM,
    ),
    Form(
        SLOWER,
        "",
        ("save",),
        "/PIL/Image.py",
        "The image is compressed as PNG: at level 6, and at 9 with optimize=True.",
        "save(..., compress_level=1) without optimize=True, for files that are 10 to 40 % larger; or JPEG or WebP for"
        " photographs",
        when=LEVEL,
    ),
    Form(
        SLOWER,
        "difflib",
        ("get_close_matches",),
        "/difflib.py",
        "get_close_matches() compares the word with each of the others in Python.",
        "rapidfuzz.process.extract(word, others, scorer=rapidfuzz.distance.Indel.normalized_similarity, limit=...,"
        " score_cutoff=...), in C; its order is close to this one, not the same",
        functions=("get_close_matches",),
    ),
)
