"""Tasks that outlive the process that asked for them."""
