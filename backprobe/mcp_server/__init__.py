"""`backprobe mcp`: tools by which an agent debugs gradients, over the Model Context Protocol. It holds no rule."""
