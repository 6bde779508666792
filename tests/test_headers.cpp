// Compiles nothing: the headers that are precompiled for this program serve all test programs.
