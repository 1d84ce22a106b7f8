"""Reading topics to an end that was asked for, through the port of the log: shared by the controller and inspection."""
