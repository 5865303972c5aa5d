"""The gateway: model APIs on loopback for programs, under the remit of the task that the program works on."""
