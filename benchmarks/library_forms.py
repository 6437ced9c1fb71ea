"""How much faster the forms of analyzer/report_data/advice/library_forms.py and of mappers are, best of three runs.

Usage: ``python benchmarks/library_forms.py [NAME ...]``. Both forms have to have the same result. CPU time of a process
of its own, without what the setup takes. Libraries that are not installed are left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 3
PROGRAM = """{setup}
import time as _time
_began = _time.process_time()
{block}
print(_time.process_time() - _began)
print(repr(result))
"""
GRAPH = "import networkx as nx\ngraph = nx.grid_2d_graph(40, 40)\nends = list(graph)[::80]"
SHAPES = """import shapely, random
r = random.Random(1)
points = [shapely.Point(r.uniform(0, 100), r.uniform(0, 100)) for _ in range(2000)]
zones = [shapely.Point(r.uniform(0, 100), r.uniform(0, 100)).buffer(3) for _ in range(60)]"""
TEXTS = """import random
r = random.Random(1)
texts = ["".join(r.choices("abcdef ", k=20)) for _ in range(1500)]
import numpy
from rapidfuzz import fuzz, process"""
SHOP = """import peewee
db = peewee.SqliteDatabase(":memory:")
class Base(peewee.Model):
    class Meta:
        database = db
class Customer(Base):
    name = peewee.CharField()
class Order(Base):
    customer = peewee.ForeignKeyField(Customer)
db.create_tables([Customer, Order])
Customer.insert_many([{"name": f"c{n}"} for n in range(200)]).execute()
for start in range(5):
    Order.insert_many([{"customer": n % 200 + 1} for n in range(400)]).execute()"""
DOCUMENT = 'import yaml\ntext = "".join(f"- name: item {n}\\n  tags: [a, b, {n}]\\n" for n in range(800))'

ORDERS = """import json
from pydantic import TypeAdapter
from typing_extensions import TypedDict
class Line(TypedDict):
    sku: str
    price: float
class Order(TypedDict):
    number: int
    lines: list[Line]
text = json.dumps([{"number": n, "lines": [{"sku": "a", "price": 2.5}] * 3} for n in range(1, 9)])"""
BODY = """import hashlib, io
import requests, urllib3
def answer():
    response = requests.Response()
    response.raw = urllib3.HTTPResponse(io.BytesIO(b"some text\\n" * 20_000), preload_content=False)
    return response"""
SHEET = """import io
import openpyxl
book = openpyxl.Workbook()
for number in range(200):
    book.active.append(["name", number, number / 7])
file = io.BytesIO()
book.save(file)
sheet = openpyxl.load_workbook(file, read_only=True).active"""

FORMS = {
    "dijkstra_path_length": (
        GRAPH,
        "result = sum(nx.dijkstra_path_length(graph, a, b) for a in ends for b in ends)",
        "result = 0\nfor a in ends:\n    lengths = nx.single_source_dijkstra_path_length(graph, a)\n"
        "    for b in ends:\n        result += lengths[b]",
    ),
    "contains": (
        SHAPES,
        "result = 0\nfor point in points:\n    for zone in zones:\n        result += zone.contains(point)",
        "tree = shapely.STRtree(zones)\nresult = len(tree.query(points, predicate='within')[0])",
    ),
    "ratio": (
        TEXTS,
        "result = 0\nfor one in texts:\n    for other in texts:\n        result += fuzz.ratio(one, other) >= 60",
        "result = int((process.cdist(texts, texts, scorer=fuzz.ratio, score_cutoff=60) >= 60).sum())",
    ),
    "euclidean": (
        "import numpy as np\nfrom scipy.spatial.distance import cdist, euclidean\n"
        "left = np.random.default_rng(1).random((150, 3))",
        "result = 0\nfor one in left:\n    for other in left:\n        result += euclidean(one, other) < 0.5",
        "result = int((cdist(left, left, 'euclidean') < 0.5).sum())",
    ),
    "getpixel": (
        "from PIL import Image\nimport numpy as np\nimage = Image.linear_gradient('L').resize((400, 300))",
        "result = 0\nfor y in range(image.height):\n    for x in range(image.width):\n"
        "        result += image.getpixel((x, y)) > 100",
        "result = int((np.asarray(image) > 100).sum())",
    ),
    "Font": (
        "import openpyxl\nfrom openpyxl.styles import Font\nsheet = openpyxl.Workbook().active\n"
        "for n in range(2000):\n    sheet.append([n] * 5)",
        "for row in sheet.iter_rows():\n    for cell in row:\n        cell.font = Font(bold=True)\n"
        "result = sheet['A1'].font.bold",
        "bold = Font(bold=True)\nfor row in sheet.iter_rows():\n    for cell in row:\n        cell.font = bold\n"
        "result = sheet['A1'].font.bold",
    ),
    "Template": (
        "import jinja2\nTEXT = '<li>{{ name }} {% if old %}!{% endif %}</li>'",
        "environment = jinja2.Environment()\n"
        "result = [environment.from_string(TEXT).render(name=n) for n in range(600)][-1]",
        "template = jinja2.Environment().from_string(TEXT)\nresult = [template.render(name=n) for n in range(600)][-1]",
    ),
    "validate": (
        "import jsonschema\nschema = {'type': 'object', 'properties': {'a': {'type': 'integer'}}, 'required': ['a']}\n"
        "rows = [{'a': n} for n in range(300)]",
        "result = 0\nfor row in rows:\n    jsonschema.validate(row, schema)\n    result += 1",
        "result = 0\nvalidator = jsonschema.validators.validator_for(schema)(schema)\nfor row in rows:\n"
        "    validator.validate(row)\n    result += 1",
    ),
    "safe_load": (DOCUMENT, "result = yaml.safe_load(text)", "result = yaml.load(text, Loader=yaml.CSafeLoader)"),
    "safe_dump": (
        DOCUMENT + "\ndata = yaml.load(text, Loader=yaml.CSafeLoader)",
        "result = yaml.safe_dump(data)",
        "result = yaml.dump(data, Dumper=yaml.CSafeDumper)",
    ),
    "guess_lexer": (
        "import pygments.lexers as lexers\npath = lexers.__file__\ncode = open(path).read()",
        "result = [lexers.guess_lexer(code).name for _ in range(20)][:0]",
        "result = [lexers.get_lexer_for_filename(path).name for _ in range(20)][:0]",
    ),
    "TypeAdapter": (
        ORDERS,
        "result = sum(TypeAdapter(list[Order]).validate_json(text)[0]['number'] for _ in range(99))",
        "adapter = TypeAdapter(list[Order])\nresult = sum(adapter.validate_json(text)[0]['number'] for _ in range(99))",
    ),
    "iter_content": (
        BODY,
        "result = hashlib.sha256()\nfor part in answer().iter_content():\n    result.update(part)\n"
        "result = result.hexdigest()",
        "result = hashlib.sha256()\nfor part in answer().iter_content(65536):\n    result.update(part)\n"
        "result = result.hexdigest()",
    ),
    "cell": (
        SHEET,
        "result = sum(sheet.cell(row, 2).value for row in range(1, 201))",
        "result = sum(row[1] for row in sheet.iter_rows(values_only=True))",
    ),
    "to_datetime": (
        "import pandas as pd\n"
        'texts = pd.date_range("2021-03-01", periods=20_000, freq="73s").strftime("%d. %b %Y, %H:%M:%S")',
        'result = list(map(str, pd.to_datetime(texts, format="mixed", dayfirst=True)[::999]))',
        'result = list(map(str, pd.to_datetime(texts, format="%d. %b %Y, %H:%M:%S")[::999]))',
    ),
    "deepcopy": (
        "import copy\nboard = {'cells': [[0] * 12 for _ in range(12)], 'turn': 0}\nresult = 0",
        "for turn in range(300):\n    then = copy.deepcopy(board)\n    then['cells'][3][4] = turn\n"
        "    result += sum(map(sum, then['cells']))",
        "for turn in range(300):\n    then = {**board, 'cells': board['cells'].copy()}\n"
        "    then['cells'][3] = then['cells'][3].copy()\n    then['cells'][3][4] = turn\n"
        "    result += sum(map(sum, then['cells']))",
    ),
    "asdict": (
        "import dataclasses\n@dataclasses.dataclass\nclass Order:\n    code: int\n    price: float\n    name: str\n"
        "orders = [Order(number, 2.5, 'tea') for number in range(5000)]",
        "result = [dataclasses.asdict(each) for each in orders]",
        "result = [{'code': each.code, 'price': each.price, 'name': each.name} for each in orders]",
    ),
    "orjson": (
        "import dataclasses, orjson\n"
        "@dataclasses.dataclass\nclass Order:\n    code: int\n    price: float\n    name: str\n"
        "orders = [Order(number, 2.5, 'tea') for number in range(50_000)]",
        "result = [orjson.dumps(dataclasses.asdict(each)) for each in orders][::99]",
        "result = [orjson.dumps(each) for each in orders][::99]",
    ),
    "merge": (
        "import numpy as np\nimport pandas as pd\nr = np.random.default_rng(1)\n"
        "orders = pd.DataFrame({'day': r.integers(0, 100, 20_000), 'customer': r.integers(0, 20_000, 20_000)})\n"
        "customers = pd.DataFrame({'customer': range(20_000), 'city': [f'city {n % 300}' for n in range(20_000)]})",
        "result = 0\nfor day in range(100):\n    part = orders[orders['day'] == day]\n"
        "    result += part.merge(customers, on='customer')['city'].nunique()",
        "joined = orders.merge(customers, on='customer')\nresult = 0\nfor day, part in joined.groupby('day'):\n"
        "    result += part['city'].nunique()",
    ),
    "stack": (
        "import inspect\ndef one():\n    return inspect.stack()[1].function\n"
        "def other():\n    return inspect.currentframe().f_back.f_code.co_name\ndef call(function):\n"
        "    return function()",
        "result = [call(one) for _ in range(300)]",
        "result = [call(other) for _ in range(300)]",
    ),
    "dumps": (
        "import json\ndata = [{'code': number, 'tags': ['a', 'b']} for number in range(20_000)]",
        "result = json.loads(json.dumps(data, indent=1))[:9]",
        "result = json.loads(json.dumps(data))[:9]",
    ),
    "dump": (
        "import io, json\ndata = [{'code': number, 'tags': ['a', 'b']} for number in range(20_000)]\n"
        "file = io.StringIO()",
        "json.dump(data, file)\nresult = len(file.getvalue())",
        "file.write(json.dumps(data))\nresult = len(file.getvalue())",
    ),
    "mean": (
        "import statistics\nvalues = [number / 8 for number in range(50_000)]",
        "result = statistics.mean(values)",
        "result = statistics.fmean(values)",
    ),
    "minidom": (
        "import xml.dom.minidom as minidom\nimport xml.etree.ElementTree as tree\n"
        "text = '<all>' + '<one code=\"7\">tea</one>' * 20_000 + '</all>'",
        "result = len(minidom.parseString(text).documentElement.childNodes)",
        "result = len(tree.fromstring(text))",
    ),
    "strptime": (
        "import functools\nfrom datetime import datetime\ntexts = [f'{number % 28 + 1:02}.11.2026' for number in"
        " range(20_000)]\n@functools.lru_cache(maxsize=1000)\ndef day(text):\n"
        "    return datetime.strptime(text, '%d.%m.%Y')",
        "result = sum(datetime.strptime(text, '%d.%m.%Y').day for text in texts)",
        "result = sum(day(text).day for text in texts)",
    ),
    "parse": (
        "from datetime import datetime\nfrom dateutil import parser\n"
        "texts = [f'2026-11-{number % 28 + 1:02} 12:45:{number % 60:02}' for number in range(20_000)]",
        "result = [parser.parse(text) for text in texts][::999]",
        "result = [datetime.fromisoformat(text) for text in texts][::999]",
    ),
    "parse_other": (
        "from datetime import datetime\nfrom dateutil import parser\n"
        "texts = [f'{number % 28 + 1:02} Nov 2026 12:45:{number % 60:02}' for number in range(20_000)]",
        "result = [parser.parse(text) for text in texts][::999]",
        "result = [datetime.strptime(text, '%d %b %Y %H:%M:%S') for text in texts][::999]",
    ),
    "save": (
        "import io\nimport numpy as np\nfrom PIL import Image\nr = np.random.default_rng(1)\n"
        "small = Image.fromarray(r.integers(0, 255, (30, 40, 3), dtype=np.uint8)).resize((1200, 900), Image.BICUBIC)\n"
        "photo = Image.fromarray((np.asarray(small) + r.integers(0, 9, (900, 1200, 3))).clip(0, 255).astype(np.uint8))",
        "photo.save(io.BytesIO(), 'png')\nresult = photo.size",
        "photo.save(io.BytesIO(), 'png', compress_level=1)\nresult = photo.size",
    ),
    "Environment": (
        "import jinja2\nLOADER = jinja2.DictLoader({'page': '<li>{{ name }} {% if old %}!{% endif %}</li>'})",
        "result = [jinja2.Environment(loader=LOADER).get_template('page').render(name=n) for n in range(600)][-1]",
        "environment = jinja2.Environment(loader=LOADER)\n"
        "result = [environment.get_template('page').render(name=n) for n in range(600)][-1]",
    ),
    "read_excel": (
        "import io\nimport pandas as pd\nfile = io.BytesIO()\n"
        "table = pd.DataFrame({'shop': [n % 50 for n in range(3000)], 'name': [f'item {n}' for n in range(3000)]})\n"
        "table.to_excel(file)\n"
        "pd.read_excel(file, engine='calamine', nrows=1)",
        "result = int(pd.read_excel(file)['shop'].sum())",
        "result = int(pd.read_excel(file, engine='calamine')['shop'].sum())",
    ),
    "compress": (
        "import gzip, json\n"
        "data = json.dumps([{'id': n, 'name': f'customer {n}', 'value': n * 1.37} for n in range(20_000)]).encode()",
        "result = len(gzip.decompress(gzip.compress(data)))",
        "result = len(gzip.decompress(gzip.compress(data, 6)))",
    ),
    "compress_text": (
        "import gzip, pydoc_data.topics as topics\ndata = str(topics.topics).encode()",
        "result = len(gzip.decompress(gzip.compress(data)))",
        "result = len(gzip.decompress(gzip.compress(data, 6)))",
    ),
    "append": (
        "import numpy as np\nfrom numba import njit\nfrom numba.typed import List\n"
        "@njit\ndef total(values):\n    found = 0.0\n    for value in values:\n        found += value\n"
        "    return found\none = List([0.5])\none.append(0.5)\ntotal(one), total(np.array([0.5]))",
        "values = List()\nfor number in range(50_000):\n    values.append(number * 0.5)\nresult = total(values)",
        "values = []\nfor number in range(50_000):\n    values.append(number * 0.5)\nresult = total(np.array(values))",
    ),
    "get_close_matches": (
        TEXTS + "\nimport difflib\nfrom rapidfuzz.distance import Indel",
        "result = [each for text in texts[:20] for each in difflib.get_close_matches(text, texts, 1)]",
        "result = [process.extract(text, texts, scorer=Indel.normalized_similarity, limit=1, score_cutoff=0.6)[0][0]"
        " for text in texts[:20]]",
    ),
    "list": (
        "import numpy as np\nfrom numba import njit\nimport warnings\nwarnings.simplefilter('ignore')\n"
        "@njit\ndef exceed(values, limit):\n    found = 0\n    for value in values:\n        found += value > limit\n"
        "    return found\nvalues = [number / 7 for number in range(20_000)]\n"
        "exceed(values, 1.0), exceed(np.array(values), 1.0)",
        "result = sum(exceed(values, float(limit)) for limit in range(50))",
        "array = np.array(values)\nresult = sum(exceed(array, float(limit)) for limit in range(50))",
    ),
    "generate_password_hash": (
        "from werkzeug.security import check_password_hash, generate_password_hash",
        "result = [check_password_hash(generate_password_hash('secret'), 'secret') for _ in range(5)]",
        "result = [check_password_hash(generate_password_hash('secret', method='pbkdf2:sha256:1'), 'secret')"
        " for _ in range(5)]",
    ),
    "relation": (
        SHOP,
        "result = sum(len(order.customer.name) for order in Order.select())",
        "result = sum(len(order.customer.name) for order in Order.select(Order, Customer).join(Customer))",
    ),
    "query": (
        SHOP,
        "result = 0\nfor number in range(1, 200):\n    result += len(Customer.get(Customer.id == number).name)",
        "names = {c.id: c.name for c in Customer.select().where(Customer.id.in_(range(1, 200)))}\n"
        "result = sum(len(names[number]) for number in range(1, 200))",
    ),
}


def run(setup: str, block: str, program: Path) -> tuple[float, str] | None:
    """Seconds and the result of one run of a form; None if a library is not installed."""
    program.write_text(PROGRAM.format(setup=setup, block=block), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, result = done.stdout.split("\n", 1)
    return float(seconds), result


def main(wanted: list[str]) -> None:
    """Prints a row for each form."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (setup, *blocks) in FORMS.items():
            if wanted and name not in wanted:
                continue
            runs = [[run(setup, block, Path(folder, "form.py")) for _ in range(RUNS)] for block in blocks]
            done = [[each for each in of_form if each is not None] for of_form in runs]
            if not all(done):
                print(f"{name:24} not installed")
                continue
            if len({result for of_form in done for _, result in of_form}) > 1:
                raise RuntimeError(f"{name}: the forms have other results")
            before, after = (min(seconds for seconds, _ in of_form) for of_form in done)
            print(f"{name:24} {before * 1e3:9.2f} ms {after * 1e3:9.2f} ms  {before / after:6.1f} times", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
