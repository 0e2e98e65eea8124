//test:plain

package query

import (
	"os"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func statement(text string, args ...any) registry.SQL {
	return registry.SQL{Parts: strings.Split(text, "${}"), Args: args}
}
