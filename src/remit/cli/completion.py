"""`remit --install-completion`: the completion of commands in a shell."""

from cyclopts.completion.install import create_install_completion_command

from remit.cli.commands import app

install = create_install_completion_command(app.install_completion, add_to_startup=True)
