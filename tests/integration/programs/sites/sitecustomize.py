"""The program's own."""

import os

os.environ["CUSTOMIZED"] = "yes"
