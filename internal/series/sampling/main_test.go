package sampling_test

import (
	"os"
	"testing"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
