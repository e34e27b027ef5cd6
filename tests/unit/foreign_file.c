// A library that is no model.
int foreign(void);
int foreign(void) { return 1; }
