"""The cluster as a whole: the policy under which it decides."""
