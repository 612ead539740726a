"""Bundle adjustment: residuals in batches, normal equations, cost and scores."""
