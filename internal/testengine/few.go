package testengine

import "os"

// Few reports that long tests should try few cases (CASES in the Makefile).
func Few() bool { return os.Getenv("SURFIN_TEST_FEW") != "" }
