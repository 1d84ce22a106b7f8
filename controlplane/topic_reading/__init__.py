"""Reading topics up to a given end, through the port of the log; shared by controller, clients and inspection."""
