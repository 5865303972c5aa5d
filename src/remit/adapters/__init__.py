"""What stands between remit and other things: programs, providers, channels, tools of servers, frameworks. A framework's
adapter knows nothing of another's."""
