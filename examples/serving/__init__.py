"""What the example services share, so that each of them shows only what is its own.

service       a service as a member of the cluster, and its process: from the start to the end of a drain
protocol      one JSON object per line over TCP
usage         what a process takes of its machine, for load reports
command_line  the options of all commands, and Kafka's settings for TLS and login
counts        what a client counted, as a line of JSON each second
restarts      restarts of processes, one after the other, and what they cost clients
"""
