"""Where everything is kept. One algorithm; each database adds a dialect."""
