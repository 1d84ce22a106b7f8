"""Members: nodes, what they say of themselves, and what operators have said of them."""
