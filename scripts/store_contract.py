"""The import contract `own_stores`: packages call functions of others instead of their stores.

A store may import another one whose SQL is part of its own statement.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


def is_store(module: str) -> bool:
    return "store" in module.split(".")[2:]


def owner(module: str) -> str:
    return ".".join(module.split(".")[:2])


class OwnStores(Contract):
    """Kept if no module imports the store of another package, except from a store."""

    type_name = "own_stores"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - passed
        foreign = [
            (importer, module)
            for module in filter(is_store, graph.modules)
            for importer in graph.find_modules_that_directly_import(module)
            if owner(importer) != owner(module) and not is_store(importer)
        ]
        return ContractCheck(kept=not foreign, metadata={"foreign": sorted(foreign)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, module in check.metadata["foreign"]:
            output.print_error(f"{importer} imports {module}: call a function of {owner(module)}")
