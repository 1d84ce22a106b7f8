"""The node session: the state machine of a node's side of its membership, which the node's agent runs."""
