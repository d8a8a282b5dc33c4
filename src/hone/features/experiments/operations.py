"""Experiments over HTTP: the tasks, and what was found out about lessons, with intervals."""

import asyncio
from functools import lru_cache
from typing import Any

from hone.core.errors import HoneError
from hone.core.secrets import redact
from hone.features.experiments.findings import Finding, found
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.report import data, sentence
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Study, Task
from hone.web.operation import Nothing, Operation, OperationCall


@lru_cache(200)
def _briefly(study: Study) -> Finding:
    """An interval takes thousands of draws, and the same runs give the same one."""
    return found(study, briefly=True)


@lru_cache(50)
def _wholly(study: Study) -> Finding:
    return found(study)


def _task(task: Task) -> dict[str, Any]:
    check = task.check
    return {
        "name": task.name,
        "session": task.session,
        "created": task.created.isoformat(),
        "request": redact(task.request),
        "files": list(task.files),
        "check": {
            "text": redact(check.text),
            "script": redact(check.script),
            "files": [{"path": path, "text": redact(words)} for path, words in check.files],
        },
    }


def _study(finding: Finding) -> dict[str, Any]:
    told = data(finding)
    done = len(finding.study.paired)
    return {**told, "lesson": redact(told["lesson"]), "done": done, "sentence": sentence(finding)}


def _listed(studies: Studies) -> dict[str, Any]:
    rows, broken = [], []
    for name in studies.names():
        try:
            task = studies.task(name)
            known = [{**_study(_briefly(each)), "runs": len(each.runs)} for each in studies.studies(name)]
        except HoneError as error:
            broken.append(str(error))
        else:
            rows.append({**_task(task), "studies": known})
    return {"experiments": rows, "broken": broken}


def _one(studies: Studies, name: str) -> dict[str, Any]:
    task = studies.task(name)
    return {**_task(task), "studies": [_study(_wholly(each)) for each in studies.studies(name)]}


async def listed(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Experiments by name. Each has its studies, the latest first, with the difference in the success rate,
    its interval of 95 % and what follows from it; `runs` counts."""
    return await asyncio.to_thread(_listed, call.state.hone.part(ExperimentsPart).studies)


async def one(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One experiment, with every figure and every run of its studies."""
    studies = call.state.hone.part(ExperimentsPart).studies
    return await asyncio.to_thread(_one, studies, call.path["experiment"])


OPERATIONS = (
    Operation("GET", "/api/experiments", listed),
    Operation("GET", "/api/experiments/{experiment}", one),
)
