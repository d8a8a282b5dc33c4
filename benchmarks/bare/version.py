"""The floor of `hone --version`: a Python process that parses its arguments and prints a version."""

import argparse

parser = argparse.ArgumentParser(prog="bare")
parser.add_argument("--version", action="version", version="bare 0.1.0")
parser.parse_args()
