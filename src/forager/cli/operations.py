"""Commands derived from operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field, create_model

from forager.cli.failures import FAILED, print_error
from forager.cli.model_flags import ModelFlags, given_values, is_list, singular
from forager.cli.options import Yes
from forager.cli.output import note, say, show_json, show_list, show_model
from forager.cli.running import Command, CommandServices, command_of, confirm, exit_if_unknown
from forager.errors import ForagerError, InvalidInput
from forager.operations.fields import FoundBy, description_of, finder_of
from forager.operations.operation import Columns, Context, Group, Operation

Show = Columns | Callable[[Any], None]


def commands_of(group: Group, shown: Mapping[str, Show] | None = None) -> typer.Typer:
    """All commands of a group; those written by hand can be added.

    `shown` has the output of commands that need more than the feature knows.
    """
    app = typer.Typer(help=group.help, no_args_is_help=True)
    app.callback()(lambda: None)  # a group of one command is a group as well
    for operation in group.operations:
        if operation.command:
            name = operation.name.removeprefix(f"{group.name} ")
            columns = (shown or {}).get(name, operation.columns)
            app.command(name)(_command(replace(operation, columns=columns)))
    return app


def _command(operation: Operation) -> Command:
    finders = _finders(operation)

    async def ask(
        services: CommandServices, calls: list[dict[str, Any]], *, preview: bool
    ) -> list[Any]:
        if preview and operation.preview is not None:
            for given in calls:
                bound = operation.bind(given)
                confirm(await operation.preview(services.context, **bound), yes=False)
        if len(calls) == 1:
            return [await answer(services.context, calls[0])]
        return [await attempt(services.context, given) for given in calls]

    async def attempt(context: Context, given: dict[str, Any]) -> Any:
        try:
            return await answer(context, given)
        except ForagerError as error:  # of several, the others are processed
            return error

    async def answer(context: Context, given: dict[str, Any]) -> Any:
        found = {name: await each.find(context, given[name]) for name, each in finders.items()}
        return await operation.run(context, **operation.bind(given | found))

    def prepare(yes: bool = False, **parts: dict[str, Any]) -> dict[str, Any]:
        if operation.method == "PATCH" and "body" in parts and not _changes(operation, parts):
            raise InvalidInput("nothing to set was given", hint="The options are values to set.")
        calls = [*_repeated(operation, parts)]
        if not finders:  # wrong inputs are reported before the database is opened
            for given in calls:
                operation.bind(given)
        inputs = {**parts["values"], **parts.get("body", {})}
        asks = _needs_confirmation(operation, inputs) and not yes
        if asks and operation.preview is None:
            confirm(_question(operation, parts), yes=yes)
        return {"calls": calls, "preview": asks}

    def print_answers(context: typer.Context, answers: list[Any]) -> None:
        _print(operation, context, answers)

    ask.__doc__ = operation.run.__doc__
    ask.__signature__ = inspect.Signature(_parameters(operation))  # type: ignore[attr-defined]
    return command_of(ask, print_answers, prepare=prepare)


def _needs_confirmation(operation: Operation, given: dict[str, Any]) -> bool:
    return operation.confirm(given) if callable(operation.confirm) else operation.confirm


def _changes(operation: Operation, parts: dict[str, dict[str, Any]]) -> bool:
    return bool(parts["body"].keys() - set(operation.arguments))


def _repeated(operation: Operation, parts: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The inputs of each call."""
    given = {name: value for part in parts.values() for name, value in part.items()}
    if operation.many:
        name = operation.path_names[-1]
        yield from ({**given, name: each} for each in given[name])
    else:
        yield given


def _question(operation: Operation, parts: dict[str, dict[str, Any]]) -> str:
    given = parts["values"] | parts.get("body", {})
    positional = (*operation.path_names, *operation.arguments)
    values = ", ".join(
        _shown(value) if name in positional else f"{name} {_shown(value)}".removesuffix(" True")
        for name, value in given.items()
    )
    what = (operation.run.__doc__ or "").partition(".")[0]
    return f"{what} ({values})?" if values else f"{what}?"


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parameters(operation: Operation) -> list[inspect.Parameter]:
    kinds: dict[str, Any] = {"services": CommandServices}
    values = _several(operation) if operation.many else _typed(operation)
    for name, model in (("values", values), ("body", operation.body)):
        if model is not None:
            kinds[name] = Annotated[dict[str, Any], _flags(operation, model)]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind, annotation=each) for name, each in kinds.items()]
    if operation.confirm:
        parameters.append(inspect.Parameter("yes", kind, annotation=Yes, default=False))
    return parameters


def _finders(operation: Operation) -> dict[str, FoundBy]:
    fields = operation.values.model_fields.items()
    return {name: finder for name, each in fields if (finder := finder_of(each)) is not None}


def _typed(operation: Operation) -> type[BaseModel]:
    """The inputs with a text instead of an ID that is also found by another form."""
    fields: dict[str, Any] = {}
    for name, finder in _finders(operation).items():
        text = description_of(operation.values.model_fields[name]).rstrip(".")
        fields[name] = (str, Field(description=f"{text}, or its {finder.form}."))
    return create_model("Values", __base__=operation.values, **fields)


def _several(operation: Operation) -> type[BaseModel]:
    """The inputs with a list instead of the last part of the path."""
    name = operation.path_names[-1]
    one = operation.values.model_fields[name]
    fields: dict[str, Any] = {name: (list[one.annotation], Field(description=one.description))}  # type: ignore[name-defined]
    return create_model("Values", __base__=operation.values, **fields)


def _flags(operation: Operation, model: type[BaseModel]) -> ModelFlags:
    lists = (name for name, each in model.model_fields.items() if is_list(each))
    changes = operation.method == "PATCH" and model is operation.body
    resets = [*filter(partial(_is_removable, model), model.model_fields)]
    if operation.resets is not None:
        resets = [name for name in resets if name in operation.resets]
    return ModelFlags(
        model,
        to=given_values,
        arguments=(*operation.path_names, *operation.arguments),
        removable=resets if changes else (),
        **{name: f"--{singular(name).replace('_', '-')}" for name in lists},
        **operation.flags,
    )


def _is_removable(model: type[BaseModel], name: str) -> bool:
    """Whether a value can be set back; an option without a value can be given as `--no-`."""
    field = model.model_fields[name]
    return field.default is None or isinstance(
        field.get_default(call_default_factory=True), bool | list
    )


def _print(operation: Operation, context: typer.Context, answers: list[Any]) -> None:
    failed = [each for each in answers if isinstance(each, ForagerError)]
    several, answers = len(answers) > 1, [each for each in answers if each not in failed]
    if context.params["as_json"]:
        documents = [answer.model_dump(mode="json") for answer in answers]
        show_json({"items": documents} if several else documents[0])
    else:
        for answer in answers:
            _show(operation, answer)
    unknown = [each for answer in answers for each in getattr(answer, "not_found", ())]
    group = operation.name.partition(" ")[0]
    noun = singular(group.replace("-", " "))
    exit_if_unknown(unknown, noun, f"`forager {group} list` lists them.")
    if operation.succeeded is not None and not all(map(operation.succeeded, answers)):
        raise typer.Exit(FAILED)
    for error in failed:
        print_error(error.message, error.hint)
    if failed:
        raise typer.Exit(max(error.exit_code for error in failed))


def _show(operation: Operation, answer: Any) -> None:
    if callable(operation.columns):
        operation.columns(answer)
    elif operation.columns is not None:
        show_list(answer, False, operation.columns, none=operation.none)
    if callable(operation.done):
        if text := operation.done(answer):
            say(text)
    elif operation.done is not None:
        say(operation.done.format_map(vars(answer)))
    elif operation.columns is None:
        show_model(answer)
    if callable(operation.note):
        if text := operation.note(answer):
            note(text)
    elif operation.secret and (getattr(answer, "secret", None) or getattr(answer, "key", None)):
        note(operation.note.format_map(vars(answer)))
