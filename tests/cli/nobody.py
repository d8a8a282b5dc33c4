"""The `hone` command for somebody whom permissions stop, also when root starts it."""

import difflib
import importlib
import json
import os
import pkgutil
import shutil
import sys
import tempfile
import tomllib

import hone
from hone.cli.main import perform

NOBODY = 65534
READY = (difflib, json, shutil, tempfile, tomllib)  # what comes later may not be able to read our own code


def give_up_rights() -> None:
    """Load all of Hone, then become a user without rights if this is root."""
    for module in pkgutil.walk_packages(hone.__path__, "hone."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main() -> None:
    give_up_rights()
    sys.exit(perform(sys.argv[1:]))


if __name__ == "__main__":
    main()
