"""Commands that prove a suspect: calls run alone, or differently, and the finding packed for its owner."""
