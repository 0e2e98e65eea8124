package testengine

import "os"

// Few says that a test of many cases, one after the other, is to try few of them: `make
// test` runs it twice, with few cases under the race detector and with all of them without
// it (CASES in the Makefile).
func Few() bool { return os.Getenv("SURFIN_TEST_FEW") != "" }
