"""`python -m remit.cli` is `remit`."""

from remit.cli.main import main

main()
