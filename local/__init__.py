"""A cloud on a laptop: an emulated control plane, one spot market behind all clouds' wire faces, real machines."""
