"""Images: registration, saddle points, warps, ray casting and texture."""
