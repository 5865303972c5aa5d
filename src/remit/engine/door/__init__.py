"""What the door needs to know of money and of people, and what it leaves behind: looked up in one transaction."""
