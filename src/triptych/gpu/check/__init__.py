"""The checks of the SIMT machine, a file each: what generated code recorded -> a finding or an error."""
