"""Shared code of the channels: secrets, requests, links, and the page that answers a link."""
