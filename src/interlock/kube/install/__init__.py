"""Everything that is installed in a cluster: definitions, rules, rights, the controller."""
