"""`python -m remit` is `remit`."""

from remit.cli.main import main

main()
