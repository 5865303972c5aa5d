"""What the channels have in common: secrets, requests, links, and the page by which a link is answered."""
