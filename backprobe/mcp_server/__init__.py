"""`backprobe mcp`: tools by which an agent debugs gradients, over the Model Context Protocol. A client: no rule is here."""
