package testengine

import "os"

// Few reports that a test of many sequential cases should try only few of them: `make test` runs it twice,
// with few cases under the race detector and with all of them without it (CASES in the Makefile).
func Few() bool { return os.Getenv("SURFIN_TEST_FEW") != "" }
