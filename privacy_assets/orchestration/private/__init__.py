"""What keeps cells private: the guard, and the storage of private tables."""
